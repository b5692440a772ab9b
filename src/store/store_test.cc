// The store without a file, on a loop that the test turns. The cases named Etcd<issue> are the bugs
// of etcd's robustness table (etcd tests/robustness/README.md).

#include "store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "store/mvcc.h"
#include "store/testing.h"

namespace sextant::store {
namespace {

using testing::DataOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MakeObject;
using testing::MakeWrite;
using Op = Write::Op;

class StoreTest : public ::testing::Test {
 protected:
  void Open(Options options) { store = *Store::Open(options, loop); }
  void SetUp() override { Open({}); }

  Committed Commit(Write write) {
    std::optional<Committed> got;
    store->Commit(std::move(write), [&](Committed c) { got = std::move(c); });
    EXPECT_FALSE(got.has_value()) << "completed inline";
    loop.RunReady();
    EXPECT_TRUE(got.has_value());
    return got.value_or(Committed{});
  }
  Committed Create(const std::string& name, std::string_view data = "x",
                   const std::string& ns = "a") {
    return Commit(MakeWrite(Op::kCreate, ns, name, data));
  }
  Committed Update(const std::string& name, std::string_view data, Revision expect = 0) {
    return Commit(MakeWrite(Op::kUpdate, "a", name, data, expect));
  }
  Committed Delete(const std::string& name, Revision expect = 0) {
    return Commit(MakeWrite(Op::kDelete, "a", name, "", expect));
  }

  // Watches and writes down "+web@3", "~web@4", "-web@5", or "@7" for progress alone.
  std::unique_ptr<Watch> Listen(WatchOptions options, std::vector<std::string>* heard) {
    options.resource = "configmaps";
    Result<std::unique_ptr<Watch>> watch =
        store->AddWatch(options, [heard](std::span<const Event> events, Revision revision) {
          for (const Event& e : events) {
            const char sign = e.type == EventType::kAdded      ? '+'
                              : e.type == EventType::kModified ? '~'
                                                               : '-';
            heard->push_back(fmt::format("{}{}@{}", sign, e.entry->key.name, e.revision));
          }
          if (events.empty()) heard->push_back(fmt::format("@{}", revision));
        });
    EXPECT_TRUE(watch.has_value()) << watch.error().message;
    return watch ? *std::move(watch) : nullptr;
  }

  ManualLoop loop;
  std::unique_ptr<Store> store;
};

TEST_F(StoreTest, CreateUpdateDelete) {
  const Committed made = Create("web", "one");
  EXPECT_EQ(made.error, CommitError::kNone);
  EXPECT_EQ(made.revision, 1u);
  EXPECT_EQ(made.entry->create_revision, 1u);
  EXPECT_EQ(made.entry->object.resource_version(), "1");

  const Committed changed = Update("web", "two", 1);
  EXPECT_EQ(changed.entry->create_revision, 1u);
  EXPECT_EQ(changed.entry->mod_revision, 2u);
  EXPECT_EQ(DataOf(*store->Get({"configmaps", "a", "web"})), "two");

  const Committed gone = Delete("web", 2);
  EXPECT_EQ(gone.error, CommitError::kNone);
  EXPECT_EQ(gone.entry->object.resource_version(), "3");
  EXPECT_EQ(DataOf(*gone.entry), "two");
  EXPECT_EQ(store->Get({"configmaps", "a", "web"}), nullptr);
  EXPECT_EQ(store->visible(), 3u);

  EXPECT_EQ(Create("web").entry->create_revision, 4u) << "made again is another object";
}

TEST_F(StoreTest, RefusalsSayWhatStandsThere) {
  Create("web", "one");
  const Committed exists = Create("web", "two");
  EXPECT_EQ(exists.error, CommitError::kExists);
  EXPECT_EQ(DataOf(*exists.entry), "one");
  const Committed conflict = Update("web", "two", 9);
  EXPECT_EQ(conflict.error, CommitError::kConflict);
  EXPECT_EQ(conflict.entry->mod_revision, 1u);
  EXPECT_EQ(Update("other", "two").error, CommitError::kNotFound);
  EXPECT_EQ(Delete("other").error, CommitError::kNotFound);
  EXPECT_EQ(Delete("web", 7).error, CommitError::kConflict);
  EXPECT_EQ(store->visible(), 1u) << "refused writes use no revision";
}

TEST_F(StoreTest, TooLarge) {
  EXPECT_EQ(Create("big", std::string(kMaxObjectBytes, 'x')).error, CommitError::kTooLarge);
  // One byte in memory, six in JSON.
  EXPECT_EQ(Create("escaped", std::string(kMaxObjectBytes / 4, '\x01')).error,
            CommitError::kTooLarge);
  EXPECT_EQ(Create("fits", std::string(kMaxObjectBytes / 2, 'x')).error, CommitError::kNone);
}

TEST_F(StoreTest, TooManyInFlight) {
  Options options;
  options.max_inflight_commits = 2;
  Open(options);
  std::vector<CommitError> errors;
  for (const char* name : {"a", "b", "c"}) {
    store->Commit(MakeWrite(Op::kCreate, "a", name, "x"),
                  [&](Committed c) { errors.push_back(c.error); });
  }
  loop.RunReady();
  EXPECT_THAT(errors, ::testing::UnorderedElementsAre(CommitError::kNone, CommitError::kNone,
                                                      CommitError::kFull));
  EXPECT_EQ(Create("c").error, CommitError::kNone) << "there is room again";
}

TEST_F(StoreTest, WhatGoesTogetherIsOrderedAsAWholeOrNotAtAll) {
  Options options;
  options.max_inflight_commits = 3;
  Open(options);
  Create("quota", "1");
  const auto together = [&](const char* name, Revision quota) {
    std::vector<Write> writes;
    writes.push_back(MakeWrite(Op::kCreate, "a", name, "x"));
    writes.push_back(MakeWrite(Op::kUpdate, "a", "quota", name));
    writes.back().expect = quota;
    return writes;
  };
  const auto error_of = [&](std::vector<Write> writes) {
    std::optional<Committed> got;
    store->CommitAll(std::move(writes), [&](Committed c) { got = std::move(c); });
    loop.RunReady();
    return got.value_or(Committed{CommitError::kStopped, nullptr, 0}).error;
  };
  EXPECT_EQ(error_of(together("one", 1)), CommitError::kNone);
  EXPECT_EQ(DataOf(*store->Get({"configmaps", "a", "quota"})), "one");
  EXPECT_EQ(store->visible(), 3u);
  // The second cannot be: neither is the first.
  EXPECT_EQ(error_of(together("two", 1)), CommitError::kConflict);
  EXPECT_EQ(store->Get({"configmaps", "a", "two"}), nullptr);
  // Room for one only.
  store->Commit(MakeWrite(Op::kCreate, "a", "b", "x"), [](Committed) {});
  store->Commit(MakeWrite(Op::kCreate, "a", "c", "x"), [](Committed) {});
  EXPECT_EQ(error_of(together("three", 3)), CommitError::kFull);
  EXPECT_EQ(store->Get({"configmaps", "a", "three"}), nullptr);
  EXPECT_EQ(DataOf(*store->Get({"configmaps", "a", "quota"})), "one");
  EXPECT_EQ(error_of(together("three", 3)), CommitError::kNone) << "there is room again";
}

TEST_F(StoreTest, OrderedIsNotVisible) {
  Create("web", "one");
  store->Commit(MakeWrite(Op::kUpdate, "a", "web", "two"), [](Committed) {});
  const Key key{"configmaps", "a", "web"};
  EXPECT_EQ(DataOf(*store->Latest(key)), "two");
  EXPECT_EQ(DataOf(*store->Get(key)), "one");
  EXPECT_EQ(store->visible(), 1u);
  const std::shared_ptr<const Snapshot> before = store->Visible("configmaps");
  loop.RunReady();
  EXPECT_EQ(DataOf(*store->Get(key)), "two");
  EXPECT_EQ(DataOf(*before->Get("a", "web")), "one");
  EXPECT_EQ(before->revision(), 1u);
  EXPECT_EQ(store->Visible("configmaps")->revision(), 2u);
}

TEST_F(StoreTest, RefusalWaitsForWhatRefusedIt) {
  std::vector<std::string> order;
  store->Commit(MakeWrite(Op::kCreate, "a", "web", "x"),
                [&](Committed) { order.push_back("created"); });
  store->Commit(MakeWrite(Op::kCreate, "a", "web", "y"), [&](Committed c) {
    EXPECT_EQ(c.error, CommitError::kExists);
    EXPECT_EQ(store->visible(), c.revision);
    order.push_back("refused");
  });
  loop.RunReady();
  EXPECT_THAT(order, ElementsAre("created", "refused"));
}

TEST_F(StoreTest, SnapshotPages) {
  for (const char* ns : {"b", "a", "ab"}) {
    for (const char* name : {"3", "1", "2"}) Create(name, "x", ns);
  }
  const auto snapshot = store->Visible("configmaps");
  const auto names = [&](std::string_view ns, std::string_view after_ns, std::string_view after,
                         size_t limit) {
    std::string out;
    for (const auto& entry : snapshot->Range(ns, after_ns, after, limit))
      out += entry->key.ns + entry->key.name + " ";
    return out;
  };
  EXPECT_EQ(names("", "", "", 0), "a1 a2 a3 ab1 ab2 ab3 b1 b2 b3 ");
  EXPECT_EQ(names("", "a", "2", 3), "a3 ab1 ab2 ");
  EXPECT_EQ(names("a", "", "", 0), "a1 a2 a3 ");
  EXPECT_EQ(names("a", "a", "1", 1), "a2 ");
  EXPECT_EQ(names("ab", "ab", "3", 0), "");
  EXPECT_EQ(names("none", "", "", 0), "");
  EXPECT_EQ(snapshot->Count("", "", ""), 9u);
  EXPECT_EQ(snapshot->Count("ab", "", ""), 3u);
  EXPECT_EQ(snapshot->Count("", "a", "2"), 7u);
  EXPECT_EQ(snapshot->Count("ab", "a", "2"), 3u);
  EXPECT_EQ(snapshot->Count("ab", "ab", "2"), 1u);
  EXPECT_EQ(snapshot->Count("a", "b", "1"), 0u);
  EXPECT_EQ(snapshot->Count("c", "", ""), 0u);
  EXPECT_EQ(store->Visible("unheard.of")->Count("", "", ""), 0u);
}

TEST_F(StoreTest, WatchHearsOnlyWhatItAskedFor) {
  std::vector<std::string> all, ns, one, other;
  auto w1 = Listen({}, &all);
  auto w2 = Listen({.ns = "a"}, &ns);
  auto w3 = Listen({.ns = "a", .name = "web"}, &one);
  auto w4 = Listen({.name = "web"}, &other);
  Create("web", "x", "a");
  Create("db", "x", "a");
  Create("web", "x", "b");
  EXPECT_THAT(all, ElementsAre("+web@1", "+db@2", "+web@3"));
  EXPECT_THAT(ns, ElementsAre("+web@1", "+db@2"));
  EXPECT_THAT(one, ElementsAre("+web@1"));
  EXPECT_THAT(other, ElementsAre("+web@1", "+web@3"));
  w2.reset();
  Delete("web");
  EXPECT_THAT(ns, ElementsAre("+web@1", "+db@2")) << "an ended watch hears nothing";
  EXPECT_THAT(one, ElementsAre("+web@1", "-web@4"));
}

TEST_F(StoreTest, WatchOfClusterScopedHearsOnce) {
  std::vector<std::string> all, one;
  auto w1 = Listen({}, &all);
  auto w2 = Listen({.name = "node-1"}, &one);
  Create("node-1", "x", "");
  EXPECT_THAT(all, ElementsAre("+node-1@1"));
  EXPECT_THAT(one, ElementsAre("+node-1@1"));
}

TEST_F(StoreTest, EventsOfOneBatchComeTogether) {
  size_t calls = 0;
  auto watch = *store->AddWatch({.resource = "configmaps"},
                                [&](std::span<const Event> events, Revision revision) {
                                  ++calls;
                                  EXPECT_EQ(events.size(), 3u);
                                  EXPECT_EQ(revision, 3u);
                                  EXPECT_EQ(events[0].previous, nullptr);
                                  EXPECT_EQ(events[1].previous, events[0].entry);
                                  EXPECT_EQ(events[2].previous, events[1].entry);
                                });
  for (auto op : {Op::kCreate, Op::kUpdate, Op::kDelete})
    store->Commit(MakeWrite(op, "a", "web", "x"), [](Committed) {});
  loop.RunReady();
  EXPECT_EQ(calls, 1u);
}

TEST_F(StoreTest, WatchFromThePast) {
  Create("web");
  Update("web", "y");
  Delete("web");
  std::vector<std::string> heard, from_two;
  auto w1 = Listen({.after = 0}, &heard);
  auto w2 = Listen({.after = 2}, &from_two);
  EXPECT_THAT(heard, IsEmpty()) << "nothing is told inline";
  Create("db");
  EXPECT_THAT(heard, ElementsAre("+web@1", "~web@2", "-web@3", "+db@4"));
  EXPECT_THAT(from_two, ElementsAre("-web@3", "+db@4"));
}

TEST_F(StoreTest, Etcd17529SlowWatchLosesNothing) {
  Options options;
  options.history_events = 2000;
  Open(options);
  std::vector<std::string> expected;
  Create("web");
  expected.push_back("+web@1");
  for (Revision i = 2; i <= 1500; ++i) {
    store->Commit(MakeWrite(Op::kUpdate, "a", "web", "x"), [](Committed) {});
    expected.push_back(fmt::format("~web@{}", i));
  }
  loop.RunReady();
  std::vector<std::string> heard;
  auto watch = Listen({.after = 0}, &heard);
  // While the backlog is told in slices, so much more happens that the history forgets its start.
  for (Revision i = 1501; i <= 6000; ++i) {
    store->Commit(MakeWrite(Op::kUpdate, "a", "web", "x"), [](Committed) {});
    expected.push_back(fmt::format("~web@{}", i));
  }
  loop.RunReady();
  EXPECT_EQ(heard, expected);
}

TEST_F(StoreTest, Etcd15220ProgressNeverRunsAheadOfEvents) {
  for (int i = 0; i < 700; ++i) Create(fmt::format("c{}", i));
  Revision last_event = 0, told = 0;
  auto watch = *store->AddWatch({.resource = "configmaps", .after = 10},
                                [&](std::span<const Event> events, Revision revision) {
                                  for (const Event& e : events) {
                                    EXPECT_GT(e.revision, told) << "told before it was heard";
                                    EXPECT_GT(e.revision, last_event);
                                    last_event = e.revision;
                                  }
                                  EXPECT_GE(revision, last_event);
                                  EXPECT_GT(revision, told);
                                  told = revision;
                                });
  loop.Advance(MvccStore::kProgressInterval);
  Commit({.op = Op::kCreate, .key = {"secrets", "a", "s"}, .object = MakeObject("a", "s", "")});
  loop.Advance(2 * MvccStore::kProgressInterval);
  EXPECT_EQ(last_event, 700u);
  EXPECT_EQ(told, 701u) << "progress of another resource is told";
}

TEST_F(StoreTest, Etcd20221FutureRevisionIsRefused) {
  Create("web");
  const auto watch = store->AddWatch({.resource = "configmaps", .after = 2},
                                     [](std::span<const Event>, Revision) { FAIL(); });
  ASSERT_FALSE(watch.has_value());
  EXPECT_EQ(watch.error().code, 504);
  EXPECT_EQ(watch.error().message, "Timeout: Too large resource version: 2, current: 1");
  ASSERT_EQ(watch.error().causes.size(), 1u);
  EXPECT_EQ(watch.error().causes[0].reason, "ResourceVersionTooLarge");
  Update("web", "y");
}

// A watch that begins again where it was ends, also at the edge of what is remembered.
TEST_F(StoreTest, Etcd15271AResumedWatchNeverGoesBack) {
  Options options;
  options.history_events = 5;
  Open(options);
  Revision heard = 0;
  Create("web");
  for (int life = 0; life < 20; ++life) {
    const Revision before = heard;
    auto watch = *store->AddWatch({.resource = "configmaps", .after = heard},
                                  [&](std::span<const Event> events, Revision revision) {
                                    for (const Event& e : events) {
                                      EXPECT_EQ(e.revision, heard + 1);
                                      heard = e.revision;
                                    }
                                    EXPECT_GE(revision, before);
                                  });
    // The watch is cut off before, amid or after the changes of this life.
    for (int i = 0; i < 5; ++i) {
      store->Commit(MakeWrite(Op::kUpdate, "a", "web", "x"), [](Committed) {});
      if (life % 3 == 0 || i == 2) loop.RunReady();
      if (i == life % 5) watch.reset();
    }
    loop.RunReady();
    if (store->OldestWatchable("configmaps") > heard) heard = store->visible();  // 410: list again
  }
  EXPECT_GT(heard, 60u);
}

// All kinds of watchers, and one transaction with everything in it.
TEST_F(StoreTest, Etcd17247NothingIsToldTwice) {
  std::vector<std::string> all, ns, one, past, other;
  auto w1 = Listen({}, &all);
  auto w2 = Listen({.ns = "a"}, &ns);
  auto w3 = Listen({.ns = "a", .name = "web"}, &one);
  auto w4 = Listen({.name = "web"}, &other);
  for (auto op : {Op::kCreate, Op::kUpdate, Op::kDelete, Op::kCreate})
    store->Commit(MakeWrite(op, "a", "web", "same"), [](Committed) {});
  loop.RunReady();
  auto w5 = Listen({.ns = "a", .after = 0}, &past);
  store->Commit(MakeWrite(Op::kUpdate, "a", "web", "same"), [](Committed) {});
  loop.RunReady();
  for (const auto* heard : {&all, &ns, &one, &past, &other})
    EXPECT_THAT(*heard, ElementsAre("+web@1", "~web@2", "-web@3", "+web@4", "~web@5"));
}

// What is refused takes no revision and changes nothing, whatever is forgotten meanwhile; what was
// read once goes on saying the same.
TEST_F(StoreTest, Etcd18667RefusalsAndForgettingChangeNothing) {
  Options options;
  options.history_events = 2;
  Open(options);
  Create("web", "one");
  const auto picture = store->Visible("configmaps");
  for (int i = 0; i < 10; ++i) Update("web", std::to_string(i));
  const Revision now = store->visible();
  EXPECT_EQ(Update("web", "x", 1).error, CommitError::kConflict) << "1 is long forgotten";
  EXPECT_EQ(Delete("web", 3).error, CommitError::kConflict);
  EXPECT_EQ(Create("web", "x").error, CommitError::kExists);
  EXPECT_EQ(store->AddWatch({.resource = "configmaps", .after = 1}, {}).error().code, 410);
  EXPECT_EQ(store->visible(), now);
  EXPECT_EQ(DataOf(*store->Get({"configmaps", "a", "web"})), "9");
  EXPECT_EQ(DataOf(*picture->Get("a", "web")), "one");
  EXPECT_EQ(picture->revision(), 1u);
  EXPECT_EQ(Update("web", "next", now).revision, now + 1);
}

TEST_F(StoreTest, Etcd19179ADeletionAtTheEdgeOfHistoryIsTold) {
  Options options;
  options.history_events = 1;
  Open(options);
  Create("web");
  Delete("web");  // 2: the only change remembered
  EXPECT_EQ(store->OldestWatchable("configmaps"), 1u);
  std::vector<std::string> heard;
  auto watch = Listen({.after = 1}, &heard);
  loop.RunReady();
  EXPECT_THAT(heard, ElementsAre("-web@2"));
}

TEST_F(StoreTest, Etcd18089NoEventIsDroppedWhereHistoryEndsOnADeletion) {
  Options options;
  options.history_events = 2;
  Open(options);
  Create("web");  // 1
  Create("db");   // 2
  Delete("web");  // 3, history: 2 3
  EXPECT_EQ(store->OldestWatchable("configmaps"), 1u);
  Delete("db");  // 4, history: 3 4
  EXPECT_EQ(store->OldestWatchable("configmaps"), 2u);
  std::vector<std::string> heard, last;
  auto w1 = Listen({.after = 2}, &heard);
  auto w2 = Listen({.after = 3}, &last);
  loop.RunReady();
  EXPECT_THAT(heard, ElementsAre("-web@3", "-db@4"));
  EXPECT_THAT(last, ElementsAre("-db@4"));

  const auto too_old = store->AddWatch({.resource = "configmaps", .after = 1},
                                       [](std::span<const Event>, Revision) {});
  ASSERT_FALSE(too_old.has_value());
  EXPECT_EQ(too_old.error().code, 410);
  EXPECT_EQ(too_old.error().reason, "Expired");
  EXPECT_EQ(too_old.error().message, "too old resource version: 1 (2)");
}

TEST_F(StoreTest, HistoryIsBoundedByBytesToo) {
  Options options;
  options.history_bytes = 100'000;
  Open(options);
  for (int i = 0; i < 20; ++i) Create(fmt::format("c{}", i), std::string(30'000, 'x'));
  EXPECT_EQ(store->OldestWatchable("configmaps"), 17u) << "three objects of 30 KB fit";
  EXPECT_EQ(store->OldestWatchable("leases"), 0u) << "each resource has its own";
  // A single object over the limit is still told.
  Create("huge", std::string(200'000, 'x'));
  EXPECT_EQ(store->OldestWatchable("configmaps"), 20u);
}

TEST_F(StoreTest, SinksMayEndAndAddWatches) {
  std::unique_ptr<Watch> first, second, added;
  std::vector<std::string> heard_by_added;
  int calls = 0;
  const WatchOptions options{.resource = "configmaps"};
  first = *store->AddWatch(options, [&](std::span<const Event>, Revision) {
    ++calls;
    second.reset();
    if (!added) added = Listen({.ns = "a", .after = 0}, &heard_by_added);
    first.reset();
  });
  second = *store->AddWatch(options, [&](std::span<const Event>, Revision) { ++calls; });
  auto in_namespace = *store->AddWatch({.resource = "configmaps", .ns = "a"},
                                       [&](std::span<const Event>, Revision) { ++calls; });
  Create("web");
  EXPECT_EQ(calls, 2) << "the second was ended by the first, the third has heard";
  EXPECT_THAT(heard_by_added, ElementsAre("+web@1")) << "once, not again from the batch";
  Create("db");
  EXPECT_EQ(calls, 3);
  EXPECT_THAT(heard_by_added, ElementsAre("+web@1", "+db@2"));
}

TEST_F(StoreTest, WatchMayOutliveTheStore) {
  std::vector<std::string> heard;
  auto watch = Listen({}, &heard);
  store.reset();
  watch.reset();
  loop.Advance(std::chrono::minutes(1));
  EXPECT_THAT(heard, IsEmpty());
}

TEST_F(StoreTest, CompletionsMayCommit) {
  std::vector<Revision> revisions;
  store->Commit(MakeWrite(Op::kCreate, "a", "web", "x"), [&](Committed c) {
    revisions.push_back(c.revision);
    store->Commit(MakeWrite(Op::kUpdate, "a", "web", "y", c.revision),
                  [&](Committed d) { revisions.push_back(d.revision); });
  });
  loop.RunReady();
  EXPECT_THAT(revisions, ElementsAre(1u, 2u));
}

TEST_F(StoreTest, Meta) {
  EXPECT_FALSE(store->GetMeta("key").has_value());
  bool done = false;
  store->PutMeta("key", "value", [&](Status s) { done = s.has_value(); });
  EXPECT_FALSE(done);
  loop.RunReady();
  EXPECT_TRUE(done);
  EXPECT_EQ(store->GetMeta("key").value(), "value");
  EXPECT_EQ(store->visible(), 0u) << "lab state uses no revision";
}

TEST_F(StoreTest, NothingIsCommittedAfterClose) {
  store->Close();
  loop.RunReady();
  EXPECT_EQ(Create("web").error, CommitError::kStopped);
}

// For the thread sanitizer, and for the promise of one revision: what readers on other threads see
// while the core commits, new resources among it, always belongs together.
TEST(StoreThreads, ReadersSeeOneRevisionWhileTheCoreCommits) {
  constexpr Revision kCommits = 2000, kEach = 50;  // objects of one resource
  // Revision r makes the object "r" in it.
  const auto resource_of = [](Revision r) { return fmt::format("r{}", (r - 1) / kEach); };
  testing::FileLab lab({});
  std::atomic<int> wrong = 0;
  ThreadPool readers("read", 3);
  for (int i = 0; i < 3; ++i) {
    readers.Post([&] {
      while (lab.store->visible() < kCommits) {
        const Revision before = lab.store->visible();
        const auto snapshot = lab.store->Visible(resource_of(before + 1));
        const Revision now = snapshot->revision();
        const Revision first = before / kEach * kEach;  // all that stood before this resource
        if (now < before || snapshot->Count("", "", "") != std::min(now, first + kEach) - first)
          ++wrong;
        if (before > 0 && !lab.store->Get({resource_of(before), "a", std::to_string(before)}))
          ++wrong;
      }
    });
  }
  lab.OnCore([&] {
    for (Revision revision = 1; revision <= kCommits; ++revision) {
      Write write = MakeWrite(Op::kCreate, "a", std::to_string(revision), "x");
      write.key.resource = resource_of(revision);
      lab.store->Commit(std::move(write), [](Committed) {});
    }
  });
  while (lab.store->visible() < kCommits) std::this_thread::yield();
  readers.Stop();
  EXPECT_EQ(wrong, 0);
}

TEST_F(StoreTest, SameScriptSameRun) {
  const auto run = [] {
    ManualLoop loop;
    auto store = *Store::Open({}, loop);
    std::string log;
    auto watch = *store->AddWatch({.resource = "configmaps"},
                                  [&](std::span<const Event> events, Revision revision) {
                                    log += fmt::format("{}/{} ", events.size(), revision);
                                  });
    for (int i = 0; i < 1000; ++i) {
      store->Commit(MakeWrite(Op::kCreate, "a", std::to_string(i), "x"),
                    [&](Committed c) { log += fmt::format("{} ", c.revision); });
      if (i % 7 == 0) loop.RunReady();
    }
    loop.RunReady();
    return log;
  };
  EXPECT_EQ(run(), run());
}

}  // namespace
}  // namespace sextant::store
