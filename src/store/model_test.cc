// The store against a plain model: any mix of writes, turns of the loop, watches and restarts.
//
// The model is a list of all changes. What must hold at every moment:
//   - the visible state is the model's state at revision visible(), the latest the one at its end;
//   - every watcher has heard exactly the changes after its start that match it, in order;
//   - after a restart the state is the model's at its end, and who resumes, or lists again after a
//     410, ends with that state.

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <map>

#include "store/testing.h"

namespace sextant::store {
namespace {

using testing::DataOf;
using testing::FileLab;
using testing::MakeWrite;
using Op = Write::Op;
using State = std::map<std::pair<std::string, std::string>, std::pair<Revision, std::string>>;

struct Change {
  EventType type;
  std::string ns, name, data;
};

struct Model {
  std::vector<Change> changes;  // revision r is changes[r - 1]

  State At(Revision revision) const {
    State state;
    for (Revision r = 1; r <= revision; ++r) {
      const Change& c = changes[r - 1];
      if (c.type == EventType::kDeleted) {
        state.erase({c.ns, c.name});
      } else {
        state[{c.ns, c.name}] = {r, c.data};
      }
    }
    return state;
  }
};

struct Listener {
  WatchOptions options;
  std::vector<std::pair<Revision, std::string>> heard;
  Revision told = 0;
  std::unique_ptr<Watch> watch;

  void Hear(std::span<const Event> events, Revision revision) {
    RC_ASSERT(revision >= told);
    told = revision;
    for (const Event& e : events) {
      RC_ASSERT(e.revision <= revision);
      RC_ASSERT(e.entry->object.resource_version() == std::to_string(e.revision));
      heard.emplace_back(e.revision, DataOf(*e.entry));
    }
  }
};

State StateOf(const std::vector<std::shared_ptr<const Entry>>& entries) {
  State state;
  for (const auto& e : entries) state[{e->key.ns, e->key.name}] = {e->mod_revision, DataOf(*e)};
  return state;
}

struct Step {
  int what;  // 0..5 write, 6 turn the loop, 7 watch, 8 end a watch
  int op;
  int place;  // which object, which listener
  int expect;
};

rc::Gen<Step> AnyStep() {
  return rc::gen::construct<Step>(rc::gen::inRange(0, 9), rc::gen::inRange(0, 3),
                                  rc::gen::inRange(0, 9), rc::gen::inRange(0, 3));
}

class Run {
 public:
  explicit Run(size_t history) {
    Options options;
    options.history_events = history;
    store_ = *Store::Open(options, loop_);
  }

  void Take(const Step& step) {
    if (step.what <= 5) WriteOne(step);
    if (step.what == 6) loop_.RunReady();
    if (step.what == 7) WatchFrom(step);
    if (step.what == 8 && !listeners_.empty())
      listeners_[static_cast<size_t>(step.place) % listeners_.size()]->watch.reset();
    Check();
  }

  void Finish() {
    loop_.RunReady();
    RC_ASSERT(store_->visible() == model_.changes.size());
    Check();
    for (const auto& listener : listeners_) {
      if (!listener->watch) continue;
      std::vector<std::pair<Revision, std::string>> expected;
      for (Revision r = listener->options.after + 1; r <= model_.changes.size(); ++r) {
        const Change& c = model_.changes[r - 1];
        const WatchOptions& o = listener->options;
        if ((o.ns.empty() || o.ns == c.ns) && (o.name.empty() || o.name == c.name))
          expected.emplace_back(r, c.data);
      }
      RC_ASSERT(listener->heard == expected);
    }
  }

 private:
  void WriteOne(const Step& step) {
    static const char* const kNamespaces[] = {"a", "b", "ab"};
    const std::string ns = kNamespaces[step.place % 3], name = std::to_string(step.place / 3);
    const std::string data = std::to_string(model_.changes.size() + 1);
    const State state = model_.At(model_.changes.size());
    const auto there = state.find({ns, name});
    const bool exists = there != state.end();
    Revision expect = 0;
    if (step.expect == 1 && exists) expect = there->second.first;
    if (step.expect == 2) expect = 1'000'000;  // never right
    const Op op = static_cast<Op>(step.op);
    CommitError want = CommitError::kNone;
    if (op == Op::kCreate) {
      if (exists) want = CommitError::kExists;
    } else if (!exists) {
      want = CommitError::kNotFound;
    } else if (expect != 0 && expect != there->second.first) {
      want = CommitError::kConflict;
    }
    if (want == CommitError::kNone) {
      const EventType type = op == Op::kCreate   ? EventType::kAdded
                             : op == Op::kUpdate ? EventType::kModified
                                                 : EventType::kDeleted;
      model_.changes.push_back({type, ns, name, op == Op::kDelete ? there->second.second : data});
    }
    const Revision revision = model_.changes.size();
    store_->Commit(MakeWrite(op, ns, name, data, expect), [this, want, revision](Committed c) {
      RC_ASSERT(c.error == want);
      RC_ASSERT(c.revision == revision);
      RC_ASSERT(store_->visible() >= revision);
    });
  }

  void WatchFrom(const Step& step) {
    static const char* const kNamespaces[] = {"", "a", "b"};
    static const char* const kNames[] = {"", "0", "1"};
    auto listener = std::make_shared<Listener>();
    listener->options = {.resource = "configmaps",
                         .ns = kNamespaces[step.op],
                         .name = kNames[step.expect],
                         .after = static_cast<Revision>(step.place) * 5};
    auto watch = store_->AddWatch(listener->options,
                                  [listener = listener.get()](auto events, Revision revision) {
                                    listener->Hear(events, revision);
                                  });
    const Revision after = listener->options.after;
    const bool possible =
        after >= store_->OldestWatchable("configmaps") && after <= store_->visible();
    RC_ASSERT(watch.has_value() == possible);
    if (!watch) {
      RC_ASSERT(watch.error().code == (after > store_->visible() ? 504 : 410));
      return;
    }
    listener->watch = *std::move(watch);
    listeners_.push_back(std::move(listener));
  }

  void Check() {
    const auto snapshot = store_->Visible("configmaps");
    RC_ASSERT(snapshot->revision() == store_->visible());
    RC_ASSERT(StateOf(snapshot->Range("", "", "", 0)) == model_.At(store_->visible()));
    for (const auto& [key, value] : model_.At(model_.changes.size())) {
      const auto latest = store_->Latest({"configmaps", key.first, key.second});
      RC_ASSERT(latest != nullptr);
      RC_ASSERT(latest->mod_revision == value.first);
    }
  }

  ManualLoop loop_;
  Model model_;
  std::unique_ptr<Store> store_;
  std::vector<std::shared_ptr<Listener>> listeners_;
};

RC_GTEST_PROP(StoreModel, BehavesAsTheModel, ()) {
  Run run(*rc::gen::inRange<size_t>(1, 40));
  const auto steps = *rc::gen::container<std::vector<Step>>(AnyStep());
  for (const Step& step : steps) run.Take(step);
  run.Finish();
}

TEST(StoreModel, RestartsBringBackTheEnd) {
  const bool held = rc::check([] {
    const TempDir dir = *TempDir::Make();
    Model model;
    const int lives = *rc::gen::inRange(1, 4);
    for (int life = 0; life < lives; ++life) {
      FileLab lab(FileLab::WithPath(dir.path() + "/state.db"));
      RC_ASSERT(!lab.error.has_value());
      const State found = lab.OnCore(
          [&] { return StateOf(lab.store->Visible("configmaps")->Range("", "", "", 0)); });
      RC_ASSERT(found == model.At(model.changes.size()));
      RC_ASSERT(lab.OnCore([&] { return lab.store->visible(); }) == model.changes.size());
      const auto steps = *rc::gen::container<std::vector<Step>>(AnyStep());
      // All ordered in one turn, so that one transaction holds many changes of one object; Close
      // must still bring all of them to the disk.
      lab.OnCore([&] {
        for (const Step& step : steps) {
          const std::string ns = "a", name = std::to_string(step.place);
          const std::string data = std::to_string(model.changes.size() + 1);
          const auto latest = lab.store->Latest({"configmaps", ns, name});
          const Op op = !latest ? Op::kCreate : step.op == 2 ? Op::kDelete : Op::kUpdate;
          model.changes.push_back({op == Op::kCreate   ? EventType::kAdded
                                   : op == Op::kUpdate ? EventType::kModified
                                                       : EventType::kDeleted,
                                   ns, name, data});
          lab.store->Commit(MakeWrite(op, ns, name, data), [](Committed) {});
        }
      });
    }
  });
  EXPECT_TRUE(held);
}

// A client as client-go's: it lists, watches from there, and where its watch cannot be resumed
// (410) it lists again. Lives of the store come and go; it must never miss, repeat or reorder a
// change.
class Follower {
 public:
  void Resume(Store& store) {
    const auto from = [&](Revision after) {
      return store.AddWatch({.resource = "configmaps", .after = after},
                            [this](auto events, Revision revision) { Hear(events, revision); });
    };
    auto watch = from(at_);
    if (!watch) {
      Want(watch.error().code == 410, "watch.error().code == 410");
      const auto snapshot = store.Visible("configmaps");
      Want(snapshot->revision() >= at_, "snapshot->revision() >= at_");
      state_ = StateOf(snapshot->Range("", "", "", 0));
      at_ = snapshot->revision();
      watch = from(at_);
    }
    Want(watch.has_value(), "watch.has_value()");
    if (watch) watch_ = *std::move(watch);
  }
  void Leave() { watch_.reset(); }
  bool following() const { return watch_ != nullptr; }
  const State& state() const { return state_; }
  const std::string& wrong() const { return wrong_; }

 private:
  void Hear(std::span<const Event> events, Revision revision) {
    for (const Event& e : events) {
      Want(e.revision > at_, "e.revision > at_");
      at_ = e.revision;
      const std::pair place{e.entry->key.ns, e.entry->key.name};
      Want((e.type == EventType::kAdded) == !state_.contains(place),
           "an addition of what is there, or a change of what is not");
      if (e.type == EventType::kDeleted) {
        state_.erase(place);
      } else {
        state_[place] = {e.revision, DataOf(*e.entry)};
      }
    }
    Want(revision >= at_, "revision >= at_");
    at_ = revision;
  }

  // Not by RC_ASSERT, which throws: this runs on the store's loop.
  void Want(bool holds, const char* what) {
    if (!holds && wrong_.empty()) wrong_ = what;
  }

  std::string wrong_;
  State state_;
  Revision at_ = 0;
  std::unique_ptr<Watch> watch_;
};

TEST(StoreModel, FollowersSurviveRestartsAndForgetting) {
  const bool held = rc::check([] {
    const TempDir dir = *TempDir::Make();
    Model model;
    Options options = FileLab::WithPath(dir.path() + "/state.db");
    options.history_events = *rc::gen::inRange<size_t>(1, 30);
    std::array<Follower, 3> followers;
    const int lives = *rc::gen::inRange(1, 5);
    for (int life = 0; life < lives; ++life) {
      FileLab lab(options);
      RC_ASSERT(!lab.error.has_value());
      const auto steps = *rc::gen::container<std::vector<Step>>(AnyStep());
      for (const Step& step : steps) {
        lab.OnCore([&] {
          Follower& follower = followers[static_cast<size_t>(step.place) % followers.size()];
          if (step.what == 7 && !follower.following()) return follower.Resume(*lab.store);
          if (step.what == 8) return follower.Leave();
          const std::string name = std::to_string(step.place);
          const std::string data = std::to_string(model.changes.size() + 1);
          const bool there = lab.store->Latest({"configmaps", "a", name}) != nullptr;
          const Op op = !there ? Op::kCreate : step.op == 2 ? Op::kDelete : Op::kUpdate;
          model.changes.push_back({op == Op::kCreate   ? EventType::kAdded
                                   : op == Op::kUpdate ? EventType::kModified
                                                       : EventType::kDeleted,
                                   "a", name, data});
          lab.store->Commit(MakeWrite(op, "a", name, data), [](Committed) {});
        });
      }
      // One more change that is waited for: everything before it is visible then.
      lab.Commit(MakeWrite(life == 0 ? Op::kCreate : Op::kUpdate, "z", "last", "x"));
      model.changes.push_back(
          {life == 0 ? EventType::kAdded : EventType::kModified, "z", "last", "x"});
      for (Follower& follower : followers) {
        lab.OnCore([&] {
          if (!follower.following()) follower.Resume(*lab.store);
        });
      }
      lab.Commit(MakeWrite(Op::kUpdate, "z", "last", "y"));
      model.changes.push_back({EventType::kModified, "z", "last", "y"});
      // A follower of the past hears its backlog over several turns.
      lab.PutMeta("turn", "over").value();
      const State end = model.At(model.changes.size());
      for (Follower& follower : followers) {
        lab.OnCore([&] { follower.Leave(); });
        RC_ASSERT(follower.wrong() == "");
        RC_ASSERT(follower.state() == end);
      }
    }
  });
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace sextant::store
