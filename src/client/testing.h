// A client whose answers the test gives: every call is written down and waits.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "client/client.h"

namespace sextant::client::testing {

inline api::Object MakeObject(std::string_view name, std::string_view revision,
                              std::string_view node = "") {
  api::Editor edit;
  edit.Root().Set("kind", "Pod");
  edit["metadata"].Set("name", name);
  edit["metadata"].Set("namespace", "default");
  edit["metadata"].Set("uid", fmt::format("uid-{}", name));
  edit["metadata"].Set("resourceVersion", revision);
  if (!node.empty()) edit["spec"].Set("nodeName", node);
  return std::move(edit).Finish();
}

class ScriptedClient : public Client {
 public:
  struct OpenWatch {
    Gvr gvr;
    WatchOptions options;
    WatchCallbacks callbacks;
    bool closed = false;

    void Send(std::vector<WatchEvent> events) { callbacks.on_events(std::move(events)); }
    void End(Status status) { callbacks.on_end(std::move(status)); }
  };
  struct OpenList {
    ListOptions options;
    Callback<struct List> done;
  };
  struct OpenWrite {
    std::string verb;
    ObjectName name;
    api::Object object;
    PatchType patch_type = PatchType::kJson;
    Callback<api::Object> done;
  };

  explicit ScriptedClient(Loop& loop) : loop_(loop) {}
  Loop& executor() override { return loop_; }

  std::unique_ptr<WatchHandle> Watch(Gvr gvr, WatchOptions options,
                                     WatchCallbacks callbacks) override {
    auto open =
        std::make_shared<OpenWatch>(OpenWatch{gvr, std::move(options), std::move(callbacks)});
    watches.push_back(open);
    struct Handle : WatchHandle {
      explicit Handle(std::shared_ptr<OpenWatch> w) : watch(std::move(w)) {}
      ~Handle() override { watch->closed = true; }
      std::shared_ptr<OpenWatch> watch;
    };
    return std::make_unique<Handle>(std::move(open));
  }
  void List(Gvr, ListOptions options, Callback<struct List> done) override {
    lists.push_back({std::move(options), std::move(done)});
  }
  void Create(Gvr, ObjectName name, api::Object object, WriteOptions,
              Callback<api::Object> done) override {
    writes.push_back({"create", std::move(name), std::move(object), {}, std::move(done)});
  }
  void Patch(Gvr, ObjectName name, PatchType type, api::Object patch, WriteOptions,
             Callback<api::Object> done) override {
    writes.push_back({"patch", std::move(name), std::move(patch), type, std::move(done)});
  }
  void Get(Gvr, ObjectName, Callback<api::Object>) override { ADD_FAILURE() << "get"; }
  void Update(Gvr, ObjectName, api::Object, WriteOptions, Callback<api::Object>) override {
    ADD_FAILURE() << "update";
  }
  void Delete(Gvr, ObjectName, DeleteOptions, Callback<api::Object>) override {
    ADD_FAILURE() << "delete";
  }
  void DeleteCollection(Gvr, ListOptions, DeleteOptions, Callback<api::Object>) override {
    ADD_FAILURE() << "delete collection";
  }
  void PodLog(ObjectName, std::string, int64_t, Callback<std::string>) override {
    ADD_FAILURE() << "log";
  }
  void GetRaw(std::string, Callback<std::string>) override { ADD_FAILURE() << "raw"; }

  std::vector<std::shared_ptr<OpenWatch>> watches;
  std::deque<OpenList> lists;
  std::deque<OpenWrite> writes;

 private:
  Loop& loop_;
};

}  // namespace sextant::client::testing
