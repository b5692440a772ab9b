#include "kubelet/log_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"

namespace sextant::kubelet {
namespace {

constexpr mode_t kLogMode = 0640;
constexpr size_t kFlushAt = 64 * 1024;

void AppendTimestamp(std::string& out, Time now) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  std::string text = FormatTime(seconds);  // "…:59Z"
  text.pop_back();
  out.append(text).append(fmt::format(".{:09}Z", (now - seconds).count()));
}

}  // namespace

Result<LogWriter> LogWriter::Open(const std::string& path, LogLimits limits, const Clock& clock) {
  LogWriter writer(path, limits, clock);
  if (path.empty()) return writer;
  writer.file_ = Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kLogMode));
  if (!writer.file_.ok()) return Fail(FileError("open", path, errno));
  struct stat info{};
  if (fstat(writer.file_.get(), &info) == 0) writer.size_ = static_cast<uint64_t>(info.st_size);
  return writer;
}

void LogWriter::Write(LogStream stream, std::string_view data) {
  if (!file_.ok()) return;
  std::string& partial = partial_[static_cast<size_t>(stream)];
  while (!data.empty()) {
    const size_t newline = data.find('\n');
    const size_t room = kLogLineMax - partial.size();
    const size_t take = std::min(newline, data.size());
    if (take > room) {  // the line is longer than one record
      partial.append(data.substr(0, room));
      Line(stream, 'P', partial);
      partial.clear();
      data.remove_prefix(room);
      continue;
    }
    if (newline == std::string_view::npos) {
      partial.append(data);
      break;
    }
    if (partial.empty()) {
      Line(stream, 'F', data.substr(0, take));
    } else {
      partial.append(data.substr(0, take));
      Line(stream, 'F', partial);
      partial.clear();
    }
    data.remove_prefix(take + 1);
  }
  Flush();
}

void LogWriter::Finish() {
  for (LogStream stream : {LogStream::kStdout, LogStream::kStderr}) {
    std::string& partial = partial_[static_cast<size_t>(stream)];
    if (file_.ok() && !partial.empty()) Line(stream, 'F', partial);
    partial.clear();
  }
  Flush();
  file_.Reset();
}

void LogWriter::Line(LogStream stream, char flag, std::string_view text) {
  AppendTimestamp(out_, clock_->Now());
  out_.append(stream == LogStream::kStdout ? " stdout " : " stderr ");
  out_.push_back(flag);
  out_.push_back(' ');
  out_.append(text);
  out_.push_back('\n');
  if (out_.size() >= kFlushAt) Flush();
}

void LogWriter::Flush() {
  if (out_.empty() || !file_.ok()) return;
  if (size_ > 0 && size_ + out_.size() > limits_.max_file_bytes) Rotate();
  std::string_view rest = out_;
  while (!rest.empty()) {
    const ssize_t n = ::write(file_.get(), rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    size_ += static_cast<uint64_t>(n);
    rest.remove_prefix(static_cast<size_t>(n));
  }
  out_.clear();
}

void LogWriter::Rotate() {
  for (int i = limits_.max_files - 1; i >= 1; --i) {
    const std::string from = i == 1 ? path_ : fmt::format("{}.{}", path_, i - 1);
    ::rename(from.c_str(), fmt::format("{}.{}", path_, i).c_str());
  }
  if (limits_.max_files <= 1) ::unlink(path_.c_str());
  Fd next(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, kLogMode));
  if (!next.ok()) return;  // goes on in the old file; tried again with the next line
  file_ = std::move(next);
  size_ = 0;
}

}  // namespace sextant::kubelet
