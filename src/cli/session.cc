#include "cli/session.h"

#include <fmt/format.h>

#include "client/kubeconfig.h"

namespace sextant::cli {
Session::Session(client::RemoteOptions options)
    : io_("cli-io", clock_), loop_("cli", clock_), client_(io_, loop_, std::move(options)) {}

Result<std::unique_ptr<Session>> Session::ToLab(const lab::LabState& state) {
  if (!state.running()) {
    return Fail(
        UsageError(fmt::format("the lab {} does not run; `sextant start --name {}` brings "
                               "it up",
                               state.name(), state.name())));
  }
  ASSIGN_OR_RETURN(const client::Kubeconfig config,
                   client::LoadKubeconfig({.path = state.file("admin.kubeconfig")}));
  ASSIGN_OR_RETURN(client::RemoteOptions options, client::OptionsFor(config, ""));
  return std::make_unique<Session>(std::move(options));
}

}  // namespace sextant::cli
