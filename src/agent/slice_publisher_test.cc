#include "agent/slice_publisher.h"

#include <gtest/gtest.h>

#include <map>

#include "api/json.h"

namespace sextant::agent {
namespace {

using api::Object;
using Updates = std::vector<std::string>;

// Slices in a map, whose one watcher is told; a node is there or not. Everything is posted.
class Slices : public client::Client {
 public:
  explicit Slices(Loop& loop) : loop_(loop) {}
  Loop& executor() override { return loop_; }

  void Get(client::Gvr, client::ObjectName name, client::Callback<Object> done) override {
    Result<Object> node = Fail(NotFound({"", "nodes"}, name.name));
    if (has_node) {
      api::Editor edit;
      edit.Root()["metadata"].Set("uid", "uid-of-" + name.name);
      node = std::move(edit).Finish();
    }
    Answer(std::move(done), std::move(node));
  }
  void List(client::Gvr, client::ListOptions options,
            client::Callback<struct client::List> done) override {
    EXPECT_EQ(options.field_selector, "spec.nodeName=worker");
    struct client::List list;
    for (const auto& [name, slice] : slices) list.items.push_back(slice);
    loop_.Post([done = std::move(done), list]() mutable { done(std::move(list)); });
  }
  std::unique_ptr<client::WatchHandle> Watch(client::Gvr, client::WatchOptions,
                                             client::WatchCallbacks callbacks) override {
    watcher_ = std::move(callbacks);
    api::Editor mark;
    mark.Root()["metadata"].Set("resourceVersion", "1");
    mark.Root()["metadata"]["annotations"].Set("k8s.io/initial-events-end", "true");
    Tell(client::WatchEventType::kBookmark, std::move(mark).Finish());
    return std::make_unique<client::WatchHandle>();
  }
  void Create(client::Gvr, client::ObjectName, Object object, client::WriteOptions,
              client::Callback<Object> done) override {
    log.push_back("create");
    if (refuse) return Answer(std::move(done), Fail(Forbidden({"", "s"}, "", "refused")));
    Store(std::move(done), object,
          std::string(object["metadata"]["generateName"].AsString()) + std::to_string(++made_));
  }
  void Update(client::Gvr, client::ObjectName name, Object object, client::WriteOptions,
              client::Callback<Object> done) override {
    log.push_back("update");
    Store(std::move(done), object, name.name);
  }
  void Delete(client::Gvr, client::ObjectName name, client::DeleteOptions options,
              client::Callback<Object> done) override {
    log.push_back("delete");
    EXPECT_EQ(options.resource_version, slices.at(name.name).resource_version());
    Remove(name.name);
    Answer(std::move(done), Object());
  }
  void Patch(client::Gvr, client::ObjectName, client::PatchType, Object, client::WriteOptions,
             client::Callback<Object>) override {}
  void DeleteCollection(client::Gvr, client::ListOptions, client::DeleteOptions,
                        client::Callback<Object>) override {}
  void PodLog(client::ObjectName, std::string, int64_t, client::Callback<std::string>) override {}
  void GetRaw(std::string, client::Callback<std::string>) override {}

  void Remove(const std::string& name) {
    const Object gone = slices.at(name);
    slices.erase(name);
    Tell(client::WatchEventType::kDeleted, gone);
  }
  void Put(Object object, const std::string& name) {
    api::Editor edit(std::move(object));
    edit["metadata"].Set("name", name);
    edit["metadata"].Set("uid", "uid-" + name);
    edit["metadata"].Set("resourceVersion", std::to_string(++revision_));
    const Object stored = std::move(edit).Finish();
    slices[name] = stored;
    Tell(client::WatchEventType::kModified, stored);
  }

  bool has_node = true;
  bool refuse = false;
  std::map<std::string, Object> slices;
  Updates log;

 private:
  void Store(client::Callback<Object> done, const Object& object, const std::string& name) {
    Put(object, name);
    Answer(std::move(done), slices[name]);
  }
  void Answer(client::Callback<Object> done, Result<Object> result) {
    loop_.Post([done = std::move(done), result = std::move(result)]() mutable {
      done(std::move(result));
    });
  }
  void Tell(client::WatchEventType type, const Object& object) {
    loop_.Post([this, type, object] { watcher_.on_events({{type, object}}); });
  }

  Loop& loop_;
  client::WatchCallbacks watcher_;
  int made_ = 0;
  int revision_ = 1;
};

class SlicePublisherTest : public testing::Test {
 protected:
  void Publish(int cards) {
    publisher_.Publish(DraDevices(
        *gpu::BuildInventory({.model = "l4", .count = 4, .dra_cards = cards}, "lab", "worker")));
    loop_.RunReady();
  }
  Updates Log() { return std::exchange(slices_.log, {}); }
  Object Of(std::string_view driver) {
    for (const auto& [name, slice] : slices_.slices)
      if (slice["spec"]["driver"].AsString() == driver) return slice;
    return {};
  }

  ManualLoop loop_;
  Slices slices_{loop_};
  SlicePublisher publisher_{slices_, {.node = "worker"}};
};

TEST_F(SlicePublisherTest, MakesOneSliceADriver) {
  Publish(2);
  EXPECT_EQ(Log(), (Updates{"create", "create"}));
  const Object slice = Of(kGpuDriver);
  EXPECT_EQ(slice.name(), "00000-gpu.nvidia.com-worker-1");
  EXPECT_EQ(slice["spec"]["nodeName"].AsString(), "worker");
  EXPECT_EQ(slice["spec"]["devices"].size(), 2u);
  EXPECT_EQ(api::ToJson(slice["spec"]["pool"]),
            R"({"name":"worker","generation":1,"resourceSliceCount":1})");
  const api::Value owner = slice["metadata"]["ownerReferences"].at(0);
  EXPECT_EQ(owner["kind"].AsString(), "Node");
  EXPECT_EQ(owner["uid"].AsString(), "uid-of-worker");
  EXPECT_EQ(slice["metadata"]["annotations"][kSimulatedAnnotation].AsString(), "true");
}

TEST_F(SlicePublisherTest, ChangesOnlyWhatHasChanged) {
  Publish(2);
  Log();
  Publish(2);
  EXPECT_EQ(Log(), Updates{});
  Publish(3);
  EXPECT_EQ(Log(), Updates{"update"});
  EXPECT_EQ(Of(kGpuDriver)["spec"]["devices"].size(), 3u);
  EXPECT_EQ(Of(kGpuDriver)["spec"]["pool"]["generation"].AsInt(), 1) << "one update is atomic";
}

TEST_F(SlicePublisherTest, TakesAwayWhatIsOfferedNoMore) {
  Publish(2);
  Log();
  Publish(0);
  EXPECT_EQ(Log(), (Updates{"delete", "delete"}));
  EXPECT_TRUE(slices_.slices.empty());
}

TEST_F(SlicePublisherTest, BringsBackWhatOthersTakeOrChange) {
  Publish(2);
  Log();
  const std::string name(Of(kGpuDriver).name());
  slices_.Remove(name);
  loop_.RunReady();
  EXPECT_EQ(Log(), Updates{"create"});
  api::Editor edit(Of(kGpuDriver));
  edit["spec"]["devices"].EraseAt(0);
  const std::string again(Of(kGpuDriver).name());
  slices_.Put(std::move(edit).Finish(), again);
  loop_.RunReady();
  EXPECT_EQ(Log(), Updates{"update"});
  EXPECT_EQ(Of(kGpuDriver)["spec"]["devices"].size(), 2u);
}

TEST_F(SlicePublisherTest, SlicesOfOlderGenerationsGo) {
  Publish(2);
  Log();
  api::Editor edit(Of(kGpuDriver));
  edit["spec"]["pool"].Set("generation", 7);
  slices_.Put(std::move(edit).Finish(), "00000-gpu.nvidia.com-worker-other");
  loop_.RunReady();
  EXPECT_EQ(Log(), Updates{"delete"});
  EXPECT_EQ(Of(kGpuDriver)["spec"]["pool"]["generation"].AsInt(), 7);
}

TEST_F(SlicePublisherTest, TriesAgainAfterARefusal) {
  slices_.refuse = true;
  Publish(1);
  EXPECT_TRUE(slices_.slices.empty());
  slices_.refuse = false;
  loop_.Advance(std::chrono::seconds(2));
  EXPECT_EQ(slices_.slices.size(), 2u);
}

TEST_F(SlicePublisherTest, ANodeThatIsGoneHasNone) {
  slices_.has_node = false;
  Publish(1);
  loop_.Advance(std::chrono::seconds(5));
  EXPECT_EQ(Log(), Updates{});
}

}  // namespace
}  // namespace sextant::agent
