// Flow control: no client takes the server for itself. Requests wait for a worker in their client's
// own line, and the lines are served in turn; how many may wait, how many watches a client may hold
// and how many bytes of answers may be on their way to it at once is bounded. What is over a bound
// is to be answered 429, as apiserver's pkg/server/filters/maxinflight.go does (kTooManyRequests).
//
// A client is whoever calls with one name: of a credential where nothing has been verified yet, of
// a user afterwards.
//
// Threads: all methods from any thread. Ownership: the executor must outlive it; a Share may
// outlive it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/executor.h"

namespace sextant::server {

inline constexpr std::string_view kTooManyRequests = "Too many requests, please try again later.\n";

class FlowControl {
 public:
  struct Limits {
    size_t waiting = 4'000;   // requests of one client
    size_t watches = 20'000;  // of one client: a lab of 5,000 nodes on one credential has 15,000
    size_t bytes = size_t{512} << 20;  // of answers, on their way to one client
  };
  FlowControl(Executor& workers, Limits limits);

  // Runs `task` on the workers when it is its turn. False, and the task is dropped: too many wait.
  bool Post(const std::string& client, Task task);

  // A part of what a client may hold, given back with the last owner.
  using Share = std::shared_ptr<const void>;
  // Null: the client holds too much already. One answer alone is never too much.
  Share TakeWatch(const std::string& client);
  Share TakeBytes(const std::string& client, size_t bytes);

 private:
  class Lines;
  Executor& workers_;
  const std::shared_ptr<Lines> lines_;
};

}  // namespace sextant::server
