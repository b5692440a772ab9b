// Shared by this room's tests: small objects, and a store whose writes are waited for.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <string>

#include "api/document.h"
#include "base/executor.h"
#include "base/file.h"
#include "store/store.h"

namespace sextant::store::testing {

inline api::Object MakeObject(std::string_view ns, std::string_view name, std::string_view data) {
  api::Editor edit;
  edit.Root().Set("apiVersion", "v1");
  edit.Root().Set("kind", "ConfigMap");
  edit["metadata"].Set("name", name);
  if (!ns.empty()) edit["metadata"].Set("namespace", ns);
  edit["data"].Set("text", data);
  return std::move(edit).Finish();
}

inline std::string DataOf(const Entry& entry) {
  return std::string(entry.object["data"]["text"].AsString());
}

inline Write MakeWrite(Write::Op op, const std::string& ns, const std::string& name,
                       std::string_view data, Revision expect = 0) {
  Write write;
  write.op = op;
  write.key = {"configmaps", ns, name};
  write.expect = expect;
  if (op != Write::Op::kDelete) write.object = MakeObject(ns, name, data);
  return write;
}

// A store on a file, with a core loop of its own. Everything runs on that loop and is waited for.
class FileLab {
 public:
  static Options WithPath(std::string path) {
    Options options;
    options.path = std::move(path);
    return options;
  }

  explicit FileLab(Options options) : core("core", clock) {
    Result<std::unique_ptr<Store>> opened = Store::Open(options, core);
    if (opened) {
      store = *std::move(opened);
    } else {
      error = std::move(opened).error();
    }
  }
  ~FileLab() { Close(); }

  void Close() {
    if (store) store->Close();
    core.Stop();
    store.reset();
  }

  template <typename F>
  auto OnCore(F work) {
    std::promise<decltype(work())> promise;
    core.Post([&] {
      if constexpr (std::is_void_v<decltype(work())>) {
        work();
        promise.set_value();
      } else {
        promise.set_value(work());
      }
    });
    return promise.get_future().get();
  }

  Committed Commit(Write write) {
    std::promise<Committed> promise;
    core.Post([&] {
      store->Commit(std::move(write), [&](Committed c) { promise.set_value(std::move(c)); });
    });
    return promise.get_future().get();
  }

  Status PutMeta(const std::string& name, const std::string& value) {
    std::promise<Status> promise;
    core.Post(
        [&] { store->PutMeta(name, value, [&](Status s) { promise.set_value(std::move(s)); }); });
    return promise.get_future().get();
  }

  RealClock clock;
  EventLoop core;
  std::unique_ptr<Store> store;
  std::optional<Error> error;
};

}  // namespace sextant::store::testing
