#include <charconv>

#include "kubelet/server_streams.h"

namespace sextant::kubelet {
namespace {

Result<std::optional<int64_t>> Number(const Query& query, std::string_view name) {
  const std::string text = QueryValue(query, name);
  if (text.empty()) return std::optional<int64_t>();
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) {
    return Fail(BadRequest(R"({"message": "Unable to decode query."})"));
  }
  return std::optional(value);
}

// Passes a log on at the client's pace.
class LogStream : public std::enable_shared_from_this<LogStream> {
 public:
  LogStream(Loop& loop, std::shared_ptr<net::ResponseWriter> writer)
      : loop_(loop), writer_(std::move(writer)) {}

  void Start(std::shared_ptr<LogReader> reader) {
    reader_ = std::move(reader);
    writer_->StartStream(200, {{"content-type", "text/plain"}});
    const std::weak_ptr<LogStream> weak = weak_from_this();
    writer_->OnClosed([weak, &loop = loop_] {
      loop.Post([weak] {
        if (auto self = weak.lock()) self->reader_.reset();
      });
    });
    Pull();
  }

 private:
  void Pull() {
    if (!reader_) return;
    reader_->Next([self = shared_from_this()](Result<std::optional<std::string>> piece) {
      self->OnPiece(std::move(piece));
    });
  }

  void OnPiece(Result<std::optional<std::string>> piece) {
    if (!reader_) return;
    if (!piece) return writer_->Abort();
    if (!*piece) {
      reader_.reset();
      return writer_->Finish();
    }
    if (!writer_->Write(net::MakeBuffer(**std::move(piece)))) {
      reader_.reset();
      return writer_->Abort();
    }
    // The next piece is read when this one is nearly out.
    writer_->OnWritable([self = shared_from_this()]() mutable {
      Loop& loop = self->loop_;
      loop.Post([self = std::move(self)] { self->Pull(); });
    });
  }

  Loop& loop_;
  const std::shared_ptr<net::ResponseWriter> writer_;
  std::shared_ptr<LogReader> reader_;
};

}  // namespace

std::string QueryValue(const Query& query, std::string_view name) {
  std::string value;
  for (const auto& [key, text] : query)
    if (key == name) value = text;
  return value;
}

bool QueryFlag(const Query& query, std::string_view name) {
  bool flag = false;
  for (const auto& [key, text] : query)
    if (key == name) flag = text != "false" && text != "0";
  return flag;
}

Result<LogOptions> ReadLogOptions(const Query& query) {
  LogOptions options;
  options.follow = QueryFlag(query, "follow");
  options.timestamps = QueryFlag(query, "timestamps");
  ASSIGN_OR_RETURN(options.tail_lines, Number(query, "tailLines"));
  ASSIGN_OR_RETURN(options.since_seconds, Number(query, "sinceSeconds"));
  ASSIGN_OR_RETURN(options.limit_bytes, Number(query, "limitBytes"));
  if (const std::string since = QueryValue(query, "sinceTime"); !since.empty()) {
    auto time = ParseTime(since);
    if (!time) return Fail(BadRequest(R"({"message": "Unable to decode query."})"));
    options.since_time = *time;
  }
  options.stream = QueryValue(query, "stream");
  return options;
}

void SendText(net::ResponseWriter& writer, int status, std::string text) {
  writer.SendResponse(status, {{"content-type", "text/plain; charset=utf-8"}}, std::move(text));
}

void ServeLog(Kubelet& kubelet, const NodeRef& node, LogRequest request,
              std::shared_ptr<net::ResponseWriter> writer) {
  auto log = kubelet.FindLog(request.ns, request.pod, request.container, request.previous);
  if (!log) return SendText(*writer, log.error().code, log.error().message);
  const auto running = [node, ns = request.ns, pod = request.pod, id = log->container_id] {
    const auto kubelet = node.lock();
    return kubelet && (*kubelet)->ContainerRuns(ns, pod, id);
  };
  auto reader =
      LogReader::Open(log->path, request.options, kubelet.files(), kubelet.loop(), running);
  std::make_shared<LogStream>(kubelet.loop(), std::move(writer))->Start(std::move(reader));
}

}  // namespace sextant::kubelet
