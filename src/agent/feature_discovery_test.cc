#include "agent/feature_discovery.h"

#include <gtest/gtest.h>

#include "api/json.h"
#include "api/patch.h"

namespace sextant::agent {
namespace {

using api::Object;

// One Node that can be read and patched; everything is posted.
class OneNode : public client::Client {
 public:
  explicit OneNode(Loop& loop) : loop_(loop) {
    api::Editor edit;
    edit.Root()["metadata"]["labels"].Set("mine", "stays");
    node = std::move(edit).Finish();
  }
  Loop& executor() override { return loop_; }
  void Get(client::Gvr, client::ObjectName, client::Callback<Object> done) override {
    ++reads;
    Result<Object> answer = node;
    if (down) answer = Fail(Error{.code = client::kTransport, .message = "down"});
    loop_.Post([done = std::move(done), answer]() mutable { done(std::move(answer)); });
  }
  void Patch(client::Gvr, client::ObjectName, client::PatchType, Object patch, client::WriteOptions,
             client::Callback<Object> done) override {
    ++writes;
    node = api::ApplyMergePatch(node.root(), patch.root());
    loop_.Post([done = std::move(done), answer = node]() mutable { done(std::move(answer)); });
  }
  void List(client::Gvr, client::ListOptions, client::Callback<struct client::List>) override {}
  std::unique_ptr<client::WatchHandle> Watch(client::Gvr, client::WatchOptions,
                                             client::WatchCallbacks) override {
    return nullptr;
  }
  void Create(client::Gvr, client::ObjectName, Object, client::WriteOptions,
              client::Callback<Object>) override {}
  void Update(client::Gvr, client::ObjectName, Object, client::WriteOptions,
              client::Callback<Object>) override {}
  void Delete(client::Gvr, client::ObjectName, client::DeleteOptions,
              client::Callback<Object>) override {}
  void DeleteCollection(client::Gvr, client::ListOptions, client::DeleteOptions,
                        client::Callback<Object>) override {}
  void PodLog(client::ObjectName, std::string, int64_t, client::Callback<std::string>) override {}
  void GetRaw(std::string, client::Callback<std::string>) override {}

  std::string Label(std::string_view key) const {
    return std::string(node["metadata"]["labels"][key].AsString());
  }

  Object node;
  bool down = false;
  int reads = 0;
  int writes = 0;

 private:
  Loop& loop_;
};

gpu::Inventory Cards(std::string model, int count) {
  return *gpu::BuildInventory({.model = std::move(model), .count = count}, "lab", "worker");
}

class FeatureDiscoveryTest : public testing::Test {
 protected:
  ManualLoop loop_;
  OneNode cluster_{loop_};
  host::SimulatedMachine machine_{loop_};
};

TEST_F(FeatureDiscoveryTest, LabelsFollowTheCards) {
  const FeatureDiscovery discovery(cluster_, machine_, "worker");
  machine_.SetCards(Cards("t4", 2));
  loop_.RunReady();
  EXPECT_EQ(cluster_.Label("nvidia.com/gpu.product"), "Tesla-T4");
  EXPECT_EQ(cluster_.Label("nvidia.com/gpu.count"), "2");
  machine_.SetCards({});
  loop_.RunReady();
  EXPECT_EQ(cluster_.node["metadata"]["labels"].size(), 1u) << "all but what is not its own";
  EXPECT_EQ(cluster_.Label("mine"), "stays");
}

TEST_F(FeatureDiscoveryTest, PutsRightWhatOthersChange) {
  const FeatureDiscovery discovery(cluster_, machine_, "worker");
  machine_.SetCards(Cards("l4", 1));
  loop_.RunReady();
  api::Editor edit(cluster_.node);
  edit.Root()["metadata"]["labels"].Set("nvidia.com/gpu.count", "100");
  cluster_.node = std::move(edit).Finish();
  loop_.Advance(std::chrono::seconds(61));
  EXPECT_EQ(cluster_.Label("nvidia.com/gpu.count"), "1");
  const int writes = cluster_.writes;
  loop_.Advance(std::chrono::minutes(5));
  EXPECT_EQ(cluster_.writes, writes) << "nothing to put right";
  machine_.SetCards({});
  loop_.RunReady();
  const int reads = cluster_.reads;
  loop_.Advance(std::chrono::minutes(5));
  EXPECT_EQ(cluster_.reads, reads) << "a node without cards is left alone";
}

TEST_F(FeatureDiscoveryTest, WhatStayedBehindGoes) {
  api::Editor edit(cluster_.node);
  edit.Root()["metadata"]["labels"].Set("nvidia.com/gpu.count", "8");
  cluster_.node = std::move(edit).Finish();
  const FeatureDiscovery discovery(cluster_, machine_, "worker");
  loop_.RunReady();
  EXPECT_EQ(cluster_.reads, 0) << "a start is not held up by nodes without cards";
  loop_.Advance(std::chrono::seconds(61));
  EXPECT_EQ(cluster_.node["metadata"]["labels"].size(), 1u);
}

TEST_F(FeatureDiscoveryTest, TriesAgain) {
  cluster_.down = true;
  const FeatureDiscovery discovery(cluster_, machine_, "worker");
  machine_.SetCards(Cards("l4", 1));
  loop_.RunReady();
  EXPECT_EQ(cluster_.writes, 0);
  cluster_.down = false;
  loop_.Advance(std::chrono::seconds(2));
  EXPECT_EQ(cluster_.Label("nvidia.com/gpu.count"), "1");
}

}  // namespace
}  // namespace sextant::agent
