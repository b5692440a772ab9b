#include "replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "api/json.h"
#include "api/protobuf.h"
#include "api/schema.h"
#include "base/ascii.h"
#include "base/file.h"
#include "net/tls.h"
#include "normaliser.h"

namespace sextant::recorded {
namespace {

constexpr Duration kAnswerLimit = std::chrono::seconds(20);
constexpr Duration kStreamPause = std::chrono::seconds(3);
constexpr size_t kMaxFact = 32 << 20;
constexpr std::string_view kServer = "127.0.0.1:6443";

const std::map<std::string, Asker>& Users() {
  static const std::map<std::string, Asker> users = {
      {"admin", {"kubernetes-super-admin", {"system:masters"}}},
      {"weak", {"weak", {}}},
      {"viewer", {"viewer", {"viewers"}}},
      {"node", {"system:node:case-node", {"system:nodes"}}},
      {"scheduler", {"system:kube-scheduler", {}}},
      {"controllers", {"system:kube-controller-manager", {}}},
      {"anonymous", {"", {}}}};
  return users;
}

const api::Message* MessageOf(std::string_view api_version, std::string_view kind) {
  return api::Registry::Builtin().FindKindMessage(api::GroupVersion::Of(api_version), kind);
}

// {"a":{"b":[..]}} by ".a.b[0]" or `["x.y"]`.
const Json* At(const Json& body, const std::string& path) {
  const Json* at = &body;
  size_t i = 0;
  while (i < path.size()) {
    std::string key;
    if (path[i] == '.') {
      size_t end = path.find_first_of(".[", i + 1);
      if (end == std::string::npos) end = path.size();
      key = path.substr(i + 1, end - i - 1);
      i = end;
    } else {
      const size_t end = path.find(']', i);
      key = path.substr(i + 1, end - i - 1);
      i = end + 1;
      if (!key.empty() && key.front() == '"') {
        key = key.substr(1, key.size() - 2);
      } else if (at->is_array()) {
        const size_t index = static_cast<size_t>(std::atoi(key.c_str()));
        if (index >= at->size()) return nullptr;
        at = &(*at)[index];
        continue;
      }
    }
    if (!at->is_object() || !at->contains(key)) return nullptr;
    at = &(*at)[key];
  }
  return at;
}

Json Decoded(const api::Object& object) {
  return Json::parse(api::ToJson(object.root(), {.escape_html = false}), nullptr, false);
}

// Spans of seconds: what the real server told at once, a busy machine tells a second later.
bool AreYoungAges(const Json& want, const Json& got) {
  const auto young = [](const Json& cell) {
    if (!cell.is_string()) return false;
    const std::string text = cell.get<std::string>();
    return text.size() == 2 && text[1] == 's' && IsDigit(text[0]);
  };
  return young(want) && young(got);
}

// The first place where two values differ, as "path: want X, got Y".
std::string Difference(const Json& want, const Json& got, const std::string& path) {
  const auto show = [](const Json& value) { return value.dump().substr(0, 300); };
  if (want.is_object() && got.is_object()) {
    for (const auto& [key, value] : want.items()) {
      if (!got.contains(key))
        return fmt::format("{}.{}: want {}, got nothing", path, key, show(value));
      std::string inner = Difference(value, got[key], path + "." + key);
      if (!inner.empty()) return inner;
    }
    for (const auto& [key, value] : got.items()) {
      if (!want.contains(key))
        return fmt::format("{}.{}: want nothing, got {}", path, key, show(value));
    }
    return "";
  }
  if (want.is_array() && got.is_array()) {
    for (size_t i = 0; i < std::min(want.size(), got.size()); ++i) {
      std::string inner = Difference(want[i], got[i], fmt::format("{}[{}]", path, i));
      if (!inner.empty()) return inner;
    }
    if (want.size() != got.size()) {
      return fmt::format("{}: want {} items, got {}: {}", path, want.size(), got.size(), show(got));
    }
    return "";
  }
  if (want == got || (path.contains(".cells[") && AreYoungAges(want, got))) return "";
  return fmt::format("{}: want {}, got {}", path, show(want), show(got));
}

struct Stream {
  std::shared_ptr<Pending> pending;
  std::string buffer;
  bool protobuf = false;
  bool ended = false;
};

class Replayer {
 public:
  Replayer(InProcessServer& server, const CaseFile& file, std::string facts)
      : server_(server), file_(file), facts_(std::move(facts)) {
    variables_["ns"] = file.name;
    variables_["server"] = kServer;
  }

  std::vector<StepResult> Run() {
    Prepare();
    std::vector<StepResult> results;
    for (const Step& step : file_.steps) results.push_back({step.name, RunStep(step)});
    for (auto& [name, stream] : streams_) stream.pending->Close();
    return results;
  }

 private:
  // The namespace and its default account, which no controller makes here.
  void Prepare() {
    Step step;
    step.method = "POST";
    step.target = "/api/v1/namespaces";
    step.body = fmt::format(
        R"({{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{}"}}}})", file_.name);
    step.has_body = true;
    (void)AskOnce(step);
    step.target = fmt::format("/api/v1/namespaces/{}/serviceaccounts", file_.name);
    step.body = R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}})";
    (void)AskOnce(step);
  }

  std::string RunStep(const Step& step) {
    if (step.method == "READ") return Read(step);
    if (step.method == "CLOSE") {
      const auto stream = streams_.find(step.target);
      if (stream != streams_.end()) stream->second.pending->Close();
      streams_.erase(step.target);
      return "";
    }
    if (!step.open.empty()) return Open(step);
    auto answer = AskOnce(step);
    for (int i = 0; step.until != 0 && answer && answer->status != step.until && i < 20; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      answer = AskOnce(step);
    }
    if (!answer) return error_;
    return Judge(step, *answer);
  }

  std::shared_ptr<Pending> Send(const Step& step) {
    error_.clear();
    net::Request request;
    request.method = step.method;
    request.SetTarget(Expand(step.target, variables_, error_));
    request.http_major = 2;
    std::map<std::string, std::string> defaults = {{"accept", "application/json"},
                                                   {"user-agent", "recorded-case/1"},
                                                   {"accept-encoding", "identity"}};
    if (step.has_body) defaults["content-type"] = "application/json";
    if (step.protobuf) defaults["content-type"] = "application/vnd.kubernetes.protobuf";
    for (const Header& header : step.headers) {
      defaults.erase(AsciiLower(header.name));
      if (!header.value.empty()) {
        request.headers.Add(AsciiLower(header.name), Expand(header.value, variables_, error_));
      }
    }
    for (const auto& [name, value] : defaults) request.headers.Add(name, value);
    request.body = Expand(step.body, variables_, error_);
    if (step.protobuf && !Encode(request.body)) return nullptr;
    if (!error_.empty()) return nullptr;
    const auto user = Users().find(step.as);
    if (user == Users().end()) {
      error_ = "unknown user " + step.as;
      return nullptr;
    }
    path_ = request.path;
    return server_.Ask(std::move(request), user->second);
  }

  bool Encode(std::string& body) {
    auto tree = api::ParseJson(body);
    if (!tree) {
      error_ = tree.error().message;
      return false;
    }
    const api::Message* message = MessageOf(tree->api_version(), tree->kind());
    auto object = message ? api::DecodeTree(tree->root(), *message) : Fail(Error{});
    if (!object) {
      error_ = "cannot encode the body as protobuf: " + object.error().message;
      return false;
    }
    body.clear();
    api::EncodeProtobuf(object->root(), *message, body);
    return true;
  }

  std::optional<Answer> AskOnce(const Step& step) {
    auto pending = Send(step);
    if (!pending) return {};
    Answer answer = pending->Wait(kAnswerLimit);
    if (answer.status == 0) error_ = "no answer";
    pending->Close();
    return answer;
  }

  NormaliseOptions OptionsOf(const Step& step) const {
    return {path_, step.items, step.keep_managed_fields, std::string(kServer)};
  }

  std::string JudgeHead(const Step& step, const Answer& answer) {
    if (answer.status != step.status) {
      return fmt::format("status: want {}, got {} {}", step.status, answer.status,
                         answer.body.substr(0, 400));
    }
    std::vector<std::string> names = {"Content-Type", "Warning",     "Allow",
                                      "Location",     "Retry-After", "WWW-Authenticate"};
    names.insert(names.end(), step.more_headers.begin(), step.more_headers.end());
    for (const std::string& name : names) {
      std::vector<std::string> want;
      std::vector<std::string> got;
      for (const Header& header : step.answer_headers) {
        if (EqualsIgnoreCase(header.name, name)) want.push_back(HeaderValue(name, header.value));
      }
      for (std::string_view value : answer.headers.GetAll(name)) {
        got.push_back(HeaderValue(name, normaliser_.Text(std::string(value), OptionsOf(step))));
      }
      if (want != got) {
        return fmt::format("header {}: want [{}], got [{}]", name, fmt::join(want, " | "),
                           fmt::join(got, " | "));
      }
    }
    return "";
  }

  static std::string HeaderValue(const std::string& name, std::string value) {
    if (EqualsIgnoreCase(name, "ETag") && !value.empty()) return "\"<etag>\"";
    if (EqualsIgnoreCase(name, "Expires") || EqualsIgnoreCase(name, "Date") ||
        EqualsIgnoreCase(name, "Last-Modified")) {
      return "<time>";
    }
    if (EqualsIgnoreCase(name, "Content-Type")) std::erase(value, ' ');
    return value;
  }

  // The body as JSON, whatever its media type; text stays a string.
  Json BodyOf(const Answer& answer) {
    const std::string_view type = answer.headers.Get("content-type");
    if (type.starts_with("application/vnd.kubernetes.protobuf")) {
      auto envelope = api::OpenProtobuf(answer.body);
      if (!envelope) return Json("undecodable protobuf");
      const api::Message* message = MessageOf(envelope->meta.api_version, envelope->meta.kind);
      if (!message) return Json("unknown protobuf kind " + envelope->meta.kind);
      auto object = api::DecodeProtobuf(envelope->raw, *message, envelope->meta);
      return object ? Decoded(*object) : Json("undecodable protobuf object");
    }
    if (type.starts_with("application/json")) {
      return Json::parse(answer.body, nullptr, false);
    }
    std::string text = answer.body;
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return Json(text);
  }

  std::string Judge(const Step& step, const Answer& answer) {
    const std::string head = JudgeHead(step, answer);
    if (step.status_only) return head;  // what is not recorded takes no number either
    const Json raw = answer.body.empty() ? Json() : BodyOf(answer);
    SaveFrom(step, raw);
    Json got;
    if (raw.is_string()) {
      got = normaliser_.Text(raw.get<std::string>(), OptionsOf(step));
    } else if (!answer.body.empty()) {
      got = normaliser_.Body(raw, OptionsOf(step));
    }
    if (!head.empty()) return head;
    SortAt(step, got);
    if (!step.fact.empty()) return JudgeFact(step, got);
    if (step.hash) got = Json{{"sha256", net::Hex(net::Sha256(got.dump()))}};
    if (step.answer_body.empty()) {
      return answer.body.empty() ? "" : "body: want none, got " + answer.body.substr(0, 300);
    }
    if (raw.is_string()) {
      return got.get<std::string>() == step.answer_body
                 ? ""
                 : fmt::format("body: want {}, got {}", step.answer_body, got.get<std::string>());
    }
    const Json want = Json::parse(step.answer_body, nullptr, false);
    return Difference(want, got, "body");
  }

  void SaveFrom(const Step& step, const Json& from) {
    for (const Save& save : step.saves) {
      const Json* value = At(from, save.path);
      if (!value) continue;
      variables_[save.name] = value->is_string() ? value->get<std::string>() : value->dump();
    }
  }

  void SortAt(const Step& step, Json& body) {
    for (const std::string& path : step.sort) {
      Json* at = const_cast<Json*>(At(body, path));
      if (!at || !at->is_array()) continue;
      std::sort(at->begin(), at->end(),
                [](const Json& a, const Json& b) { return a.dump() < b.dump(); });
    }
  }

  std::string JudgeFact(const Step& step, const Json& got) {
    auto text = ReadFile(facts_ + "/" + step.fact, kMaxFact);
    if (!text) return text.error().message;
    return Difference(Json::parse(*text, nullptr, false), got, "fact");
  }

  std::string Open(const Step& step) {
    auto pending = Send(step);
    if (!pending) return error_;
    if (!pending->WaitForHeaders(kAnswerLimit)) return "the watch did not begin";
    const Answer head = pending->head();
    Stream stream;
    stream.pending = pending;
    stream.protobuf = head.headers.Get("content-type").find("protobuf") != std::string_view::npos;
    streams_[step.open] = std::move(stream);
    return JudgeHead(step, head);
  }

  // The next event of a stream; nothing at its end or when none comes.
  std::optional<Json> NextEvent(Stream& stream) {
    while (true) {
      if (auto event = TakeEvent(stream)) return event;
      if (stream.ended) return {};
      const size_t before = stream.buffer.size();
      stream.buffer += stream.pending->TakeBytes(kStreamPause, stream.ended);
      if (stream.buffer.size() == before && !stream.ended) return {};
    }
  }

  std::optional<Json> TakeEvent(Stream& stream) {
    if (!stream.protobuf) {
      const size_t newline = stream.buffer.find('\n');
      if (newline == std::string::npos) return {};
      Json event = Json::parse(stream.buffer.substr(0, newline), nullptr, false);
      stream.buffer.erase(0, newline + 1);
      return event;
    }
    if (stream.buffer.size() < 4) return {};
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(stream.buffer[i]); };
    const size_t size = (static_cast<size_t>(byte(0)) << 24) |
                        (static_cast<size_t>(byte(1)) << 16) | (static_cast<size_t>(byte(2)) << 8) |
                        byte(3);
    if (stream.buffer.size() < 4 + size) return {};
    const std::string frame = stream.buffer.substr(4, size);
    stream.buffer.erase(0, 4 + size);
    auto opened = api::OpenWatchFrame(frame);
    if (!opened) return Json("undecodable frame");
    Answer object;
    object.headers.Add("content-type", "application/vnd.kubernetes.protobuf");
    object.body = opened->body;
    return Json{{"type", std::string(opened->type)}, {"object", BodyOf(object)}};
  }

  static bool IsPeriodicBookmark(const Json& event) {
    return event.is_object() && event.value("type", "") == "BOOKMARK" &&
           event.dump().find("k8s.io/initial-events-end") == std::string::npos;
  }

  std::string Read(const Step& step) {
    const size_t space = step.target.find(' ');
    const auto found = streams_.find(step.target.substr(0, space));
    if (found == streams_.end()) return "no such stream";
    const std::string count = step.target.substr(space + 1);
    const size_t wanted = count == "end" ? SIZE_MAX : static_cast<size_t>(std::atoi(count.c_str()));
    Json events = Json::array();
    while (events.size() < wanted) {
      auto event = NextEvent(found->second);
      if (!event) break;
      if (!IsPeriodicBookmark(*event)) events.push_back(*event);
    }
    SaveFrom(step, events);
    NormaliseOptions options = OptionsOf(step);
    options.path = "/";
    const Json got = normaliser_.Body(events, options);
    Json want = Json::parse(step.answer_body, nullptr, false);
    for (Json& event : want) {
      if (event.contains("object")) normaliser_.WalkCells(event["object"]);
    }
    return Difference(want, got, "events");
  }

  InProcessServer& server_;
  const CaseFile& file_;
  const std::string facts_;
  std::map<std::string, std::string> variables_;
  std::map<std::string, Stream> streams_;
  Normaliser normaliser_;
  std::string error_;
  std::string path_;
};

}  // namespace

std::vector<StepResult> Replay(InProcessServer& server, const CaseFile& file,
                               const std::string& facts_directory) {
  return Replayer(server, file, facts_directory).Run();
}

}  // namespace sextant::recorded
