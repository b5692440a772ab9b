// Watches: a stream of what happens to a collection, in order, without gaps, filtered by selectors.
//
//   auto watch = WatchStream::Make(pipeline, op, sink);   // any thread; errors: what is asked
//   (*watch)->Start();
//   (*watch)->Stop();
//
// Where it starts follows the real server: resourceVersion unset or 0: the present objects as
// ADDED, then changes; sendInitialEvents: the same, then a bookmark annotated
// k8s.io/initial-events-end; a revision: what came after it, or one ERROR event with a 410 Status
// when that is too old.
//
// Events come from the store on the core loop; filtering and the sink run on a strand of the
// workers. The caller has authorized the operation.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/strand.h"
#include "server/filter.h"
#include "server/pipeline.h"

namespace sextant::server {

enum class WatchKind : uint8_t { kAdded, kModified, kDeleted, kBookmark, kError };

struct WatchUpdate {
  WatchKind kind = WatchKind::kAdded;
  // In the served version; a Status for kError; apiVersion, kind and metadata.resourceVersion for
  // kBookmark.
  api::Object object;
};

class WatchStream : public std::enable_shared_from_this<WatchStream> {
 public:
  // Called on the strand. Updates empty and `end` true: the stream is over (time-out, or after an
  // error event). False from the sink stops the stream.
  using Sink = std::function<bool(std::vector<WatchUpdate> updates, bool end)>;

  static Result<std::shared_ptr<WatchStream>> Make(Pipeline& pipeline, Operation op, Sink sink);
  void Start();

  // The stream is over in good order, after what is told already.
  void End();
  // Nothing is told afterwards, except what the strand is telling at this moment.
  void Stop();

 private:
  WatchStream(Pipeline& pipeline, Operation op, Filter filter, store::Revision after, Sink sink);
  void Begin();                                           // core
  void OnBatch(std::span<const store::Event> events);     // core
  void Tell(std::vector<WatchUpdate> updates, bool end);  // core or strand: posts to the strand
  void Translate(const store::Event& event, std::vector<WatchUpdate>& out) const;
  void ArmBookmark();  // core
  WatchUpdate Bookmark(store::Revision revision, bool initial_end) const;

  Pipeline& pipeline_;
  const Operation op_;
  const Filter filter_;
  const store::Revision asked_;  // 0: from what there is now
  const Sink sink_;
  Strand strand_;
  std::atomic<bool> stopped_ = false;
  // Core loop only:
  std::unique_ptr<store::Watch> watch_;
  TimerId bookmark_timer_ = 0;
  TimerId end_timer_ = 0;
};

}  // namespace sextant::server
