#include "cli/session.h"

#include <fmt/format.h>

#include "client/kubeconfig.h"

namespace sextant::cli {
namespace {

constexpr Duration kAnswerLimit = std::chrono::seconds(30);
constexpr std::string_view kManager = "sextant";

}  // namespace

Session::Session(client::RemoteOptions options)
    : io_("cli-io", clock_), loop_("cli", clock_), client_(io_, loop_, std::move(options)) {}

Result<std::unique_ptr<Session>> Session::ToLab(const lab::LabState& state) {
  if (!state.running()) {
    return Fail(UsageError(fmt::format("the lab {} does not run; `sextant start --name {}` brings "
                                       "it up",
                                       state.name(), state.name())));
  }
  ASSIGN_OR_RETURN(const client::Kubeconfig config,
                   client::LoadKubeconfig({.path = state.file("admin.kubeconfig")}));
  ASSIGN_OR_RETURN(client::RemoteOptions options, client::OptionsFor(config, ""));
  return std::make_unique<Session>(std::move(options));
}

template <typename T, typename F>
Result<T> Session::Wait(F call) {
  auto promise = std::make_shared<std::promise<Result<T>>>();
  auto future = promise->get_future();
  call([promise](Result<T> result) { promise->set_value(std::move(result)); });
  if (future.wait_for(kAnswerLimit) != std::future_status::ready) {
    return Fail(Timeout("the cluster did not answer in time", 0));
  }
  return future.get();
}

Result<api::Object> Session::Get(client::Gvr gvr, client::ObjectName name) {
  return Wait<api::Object>([&](auto done) { client_.Get(gvr, name, std::move(done)); });
}

Result<client::List> Session::List(client::Gvr gvr, client::ListOptions options) {
  return Wait<client::List>([&](auto done) { client_.List(gvr, options, std::move(done)); });
}

Result<api::Object> Session::Create(client::Gvr gvr, client::ObjectName name, api::Object object) {
  return Wait<api::Object>([&](auto done) {
    client_.Create(gvr, name, object, {.field_manager = std::string(kManager)}, std::move(done));
  });
}

Result<api::Object> Session::Patch(client::Gvr gvr, client::ObjectName name, api::Object patch) {
  return Wait<api::Object>([&](auto done) {
    client_.Patch(gvr, name, client::PatchType::kMerge, patch,
                  {.field_manager = std::string(kManager)}, std::move(done));
  });
}

Result<api::Object> Session::Delete(client::Gvr gvr, client::ObjectName name) {
  return Wait<api::Object>([&](auto done) { client_.Delete(gvr, name, {}, std::move(done)); });
}

Result<std::string> Session::GetRaw(std::string path) {
  return Wait<std::string>([&](auto done) { client_.GetRaw(path, std::move(done)); });
}

}  // namespace sextant::cli
