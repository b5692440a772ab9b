// Snapshots that continue tokens point to. A page of a list is answered from the same picture as
// the first one; a token whose picture has gone gets 410 Expired. Bounded by count and age.
// Threads: any (a mutex; workers only, never the core loop).
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "store/store.h"

namespace sextant::server {

class PageCache {
 public:
  static constexpr size_t kMaxSnapshots = 256;
  static constexpr Duration kMaxAge = std::chrono::minutes(5);

  void Put(std::string resource, std::shared_ptr<const store::Snapshot> snapshot, Duration now);
  // nullptr if it has gone.
  std::shared_ptr<const store::Snapshot> Find(std::string_view resource, store::Revision revision,
                                              Duration now);

 private:
  struct Page {
    std::string resource;
    std::shared_ptr<const store::Snapshot> snapshot;
    Duration used;
  };
  std::mutex mutex_;
  std::deque<Page> pages_;  // guarded by mutex_; oldest use first
};

// What a continue token says, in the form of apiserver's own tokens.
struct ContinueToken {
  store::Revision revision = 0;
  std::string ns;
  std::string name;  // the last one told
};
std::string EncodeContinue(const ContinueToken& token);
// BadRequest when it is none of ours.
Result<ContinueToken> DecodeContinue(std::string_view text);

}  // namespace sextant::server
