// Reads a container's log as `kubectl logs` wants it: CRI-format files with rotation, followed,
// from a time or a number of lines, with a limit in bytes.
//
//   auto reader = LogReader::Open(path, options, worker, loop, still_running);
//   reader->Next([](Result<std::optional<std::string>> chunk) { ... });   // nullopt: the end
//
// Pull: nothing is read before the consumer asks, one Next at a time; so a slow consumer holds up
// nobody. Files are read on `worker`; callbacks come on `loop`. Dropping the reader cancels it.
// Source: kubelet pkg/kubelet/kuberuntime/logs (ReadLogs) and the CRI log format.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/executor.h"
#include "base/status.h"

namespace sextant::kubelet {

struct LogOptions {
  bool follow = false;
  bool timestamps = false;
  std::optional<int64_t> tail_lines;
  std::optional<int64_t> since_seconds;
  std::optional<Time> since_time;
  std::optional<int64_t> limit_bytes;
  std::string stream;  // "Stdout", "Stderr"; empty or "All": both
};

inline constexpr size_t kLogChunk = 64 * 1024;

class LogReader {
 public:
  using NextCallback = std::function<void(Result<std::optional<std::string>>)>;

  // `path` is the container's current log file; rotated ones beside it are read first. For the
  // previous instance pass that instance's path. `still_running` is asked on `loop` while
  // following: false ends the log after what is already written. A file that is missing is an empty
  // log.
  static std::shared_ptr<LogReader> Open(std::string path, LogOptions options, Executor& worker,
                                         Loop& loop, std::function<bool()> still_running);
  virtual ~LogReader() = default;
  virtual void Next(NextCallback callback) = 0;
};

}  // namespace sextant::kubelet
