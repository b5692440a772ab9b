// Writes a container's output as a CRI log file, bounded: rotated at `max_file_bytes`, at most
// `max_files` files ("0.log", then "0.log.1" …, the oldest with the highest number).
//
//   2026-11-30T09:47:59.123456789Z stdout F text
//
// F ends a line, P is a piece of a longer one (over kLogLineMax bytes, or not ended yet).
// Threads: one owner. Errors of writing (a full disk) lose the line, not more: a Pod does
// not fail for its log.
// Source: CRI log format (kubernetes design proposals, kubelet-cri-logging); kubelet's defaults
// containerLogMaxSize 10Mi and containerLogMaxFiles 5.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "kubelet/fd.h"

namespace sextant::kubelet {

inline constexpr size_t kLogLineMax = 16 * 1024;
inline constexpr uint64_t kLogFileMaxBytes = 10 << 20;
inline constexpr int kLogMaxFiles = 5;

enum class LogStream { kStdout = 0, kStderr = 1 };

struct LogLimits {
  uint64_t max_file_bytes = kLogFileMaxBytes;
  int max_files = kLogMaxFiles;
};

class LogWriter {
 public:
  // An empty path makes a writer that drops everything.
  static Result<LogWriter> Open(const std::string& path, LogLimits limits, const Clock& clock);

  void Write(LogStream stream, std::string_view data);
  // Writes what is left of lines without an end.
  void Finish();

 private:
  LogWriter(std::string path, LogLimits limits, const Clock& clock)
      : path_(std::move(path)), limits_(limits), clock_(&clock) {}
  void Line(LogStream stream, char flag, std::string_view text);
  void Flush();
  void Rotate();

  std::string path_;
  LogLimits limits_;
  const Clock* clock_;
  Fd file_;
  uint64_t size_ = 0;
  std::array<std::string, 2> partial_;  // by stream: a line without its end
  std::string out_;                     // lines not yet given to the file
};

}  // namespace sextant::kubelet
