#include "client/blocking.h"

#include <future>

namespace sextant::client {
namespace {

// A late answer finds its promise still alive and is dropped with it.
template <typename T, typename F>
Result<T> Wait(F call) {
  auto promise = std::make_shared<std::promise<Result<T>>>();
  auto future = promise->get_future();
  call([promise](Result<T> result) { promise->set_value(std::move(result)); });
  if (future.wait_for(Blocking::kAnswerLimit) != std::future_status::ready) {
    return Fail(Timeout("the cluster did not answer in time", 0));
  }
  return future.get();
}

}  // namespace

Result<api::Object> Blocking::Get(Gvr gvr, ObjectName name) {
  return Wait<api::Object>([&](auto done) { client_.Get(gvr, name, std::move(done)); });
}

Result<struct List> Blocking::List(Gvr gvr, ListOptions options) {
  return Wait<struct List>([&](auto done) { client_.List(gvr, options, std::move(done)); });
}

Result<api::Object> Blocking::Create(Gvr gvr, ObjectName name, api::Object object,
                                     WriteOptions options) {
  return Wait<api::Object>(
      [&](auto done) { client_.Create(gvr, name, object, options, std::move(done)); });
}

Result<api::Object> Blocking::Patch(Gvr gvr, ObjectName name, PatchType type, api::Object patch,
                                    WriteOptions options) {
  return Wait<api::Object>(
      [&](auto done) { client_.Patch(gvr, name, type, patch, options, std::move(done)); });
}

Result<api::Object> Blocking::Delete(Gvr gvr, ObjectName name, DeleteOptions options) {
  return Wait<api::Object>([&](auto done) { client_.Delete(gvr, name, options, std::move(done)); });
}

Result<std::string> Blocking::PodLog(ObjectName pod, std::string container, int64_t limit_bytes) {
  return Wait<std::string>(
      [&](auto done) { client_.PodLog(pod, container, limit_bytes, std::move(done)); });
}

Result<std::string> Blocking::GetRaw(std::string path) {
  return Wait<std::string>([&](auto done) { client_.GetRaw(path, std::move(done)); });
}

}  // namespace sextant::client
