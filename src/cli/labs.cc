// Labs that are there: down, stop, start, list, status, kubeconfig, get nodes.
#include <fmt/format.h>

#include <cstdio>

#include "api/json.h"
#include "base/file.h"
#include "base/quote.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/process.h"
#include "cli/session.h"
#include "client/kubeconfig.h"

namespace sextant::cli {
namespace {

constexpr size_t kMaxKubeconfig = 1 << 20;
constexpr size_t kMaxNamed = 8;  // nodes in a line for a person

// "a, b, c and 4998 more"
std::string ShortList(const std::vector<std::string>& names) {
  const size_t shown = names.size() > kMaxNamed + 1 ? kMaxNamed : names.size();
  std::string text = fmt::format(
      "{}", fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(shown), ", "));
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

}  // namespace

void Print(const api::Object& object) {
  fmt::print("{}",
             api::ToJson(object.root(), {.indent = 2, .newline = true, .escape_html = false}));
}

std::vector<std::string> NodeNames(const lab::LabState& state, const lab::LabRecord& record) {
  std::vector<std::string> names;
  if (auto session = Session::ToLab(state)) {
    if (auto nodes = (*session)->calls().List(client::kNodes)) {
      for (const api::Object& node : nodes->items) names.emplace_back(node.name());
      return names;
    }
  }
  for (const lab::NodeConfig& node : record.config.nodes) names.push_back(node.name);
  return names;
}

int Down(const std::string& name, const std::string& kubeconfig, bool as_kind) {
  auto state = as_kind ? lab::LabState::Of(name) : FindLab(name);
  if (!state) return Report(state.error());
  if (!state->exists()) return 0;  // kind deletes what is not there without a word
  auto record = state->Read();
  if (auto stopped = StopProcess(*state); !stopped) return Report(stopped.error());
  // Where the lock cannot be written (a full disk) the folder goes all the same.
  if (auto locked = state->Lock(); !locked && state->running()) return Report(locked.error());
  if (record) {
    const std::string& file = kubeconfig.empty() ? record->kubeconfig : kubeconfig;
    if (auto gone = client::RemoveContext(record->context, {.path = file}); !gone) {
      return Report(gone.error());
    }
  }
  if (auto removed = state->Remove(); !removed) return Report(removed.error());
  if (!as_kind) fmt::print(stderr, "The lab {} is down, its state removed\n", state->name());
  if (as_kind && record) {
    std::vector<std::string> nodes;
    for (const lab::NodeConfig& node : record->config.nodes) nodes.push_back(Quote(node.name));
    fmt::print(stderr, "Deleted nodes: [{}]\n", fmt::join(nodes, " "));
  }
  return 0;
}

int Stop(const std::string& name) {
  auto state = FindLab(name);
  if (!state) return Report(state.error());
  auto record = state->Read();
  if (!record) return Report(record.error());
  if (record->ephemeral) {
    return Report(UsageError(
        fmt::format("the lab {} is ephemeral: stopping would lose it; `sextant down` takes it down",
                    state->name())));
  }
  if (auto stopped = StopProcess(*state); !stopped) return Report(stopped.error());
  fmt::print(stderr, "The lab {} is stopped; its state stays in {}\n", state->name(),
             state->directory());
  return 0;
}

int Start(const std::string& name, const std::string& wait) {
  auto state = FindLab(name);
  if (!state) return Report(state.error());
  auto record = state->Read();
  if (!record) return Report(record.error());
  auto limit = ParseWait(wait);
  if (!limit) return Report(limit.error());
  if (state->running()) {
    fmt::print(stderr, "The lab {} is running already\n", state->name());
    return 0;
  }
  if (record->ephemeral) {
    return Report(
        UsageError(fmt::format("the lab {} was ephemeral and is gone with its process: `sextant up "
                               "--name {}` makes a new one",
                               state->name(), state->name())));
  }
  return Launch(*state, *record, {.wait = *limit});
}

int List(Output output) {
  auto names = lab::LabState::List();
  if (!names) return Report(names.error());
  if (names->empty() && output == Output::kText) {
    fmt::print(stderr, "there is no lab; `sextant up` makes one\n");
  }
  api::Editor edit;
  edit.Root().SetList();
  for (const std::string& name : *names) {
    auto state = lab::LabState::Of(name);
    const bool running = state && state->running();
    api::Mut out = edit.Root().Append();
    out.Set("name", name);
    out.Set("running", running);
    if (output == Output::kText) {
      fmt::print("{:<20} {}\n", name, running ? "running" : "stopped");
    }
  }
  if (output == Output::kJson) Print(std::move(edit).Finish());
  return 0;
}

int LabStatusOf(const std::string& name, Output output) {
  auto state = FindLab(name);
  if (!state) return Report(state.error());
  auto record = state->Read();
  if (!record) return Report(record.error());
  const bool running = state->running();
  auto status = running ? state->ReadStatus() : lab::LabStatus{};
  if (!status) return Report(status.error());
  const std::vector<std::string> nodes = NodeNames(*state, *record);
  if (output == Output::kJson) {
    api::Editor edit;
    api::Mut root = edit.Root();
    root.Set("name", state->name());
    root.Set("running", running);
    root.Set("pid", status->pid);
    root.Set("server", status->server);
    root["nodes"].SetList();
    for (const std::string& node : nodes) root["nodes"].Append().SetString(node);
    root.Set("version", version::kKubernetes);
    root.Set("runtime", status->runtime);
    root.Set("runtimeExplanation", status->explanation);
    root.Set("simulated", true);
    root.Set("context", record->context);
    root.Set("state", state->directory());
    Print(std::move(edit).Finish());
    return 0;
  }
  fmt::print("lab      {} ({})\n", state->name(), running ? "running, simulated GPUs" : "stopped");
  if (running) {
    fmt::print("server   {}\npid      {}\nruntime  {}\n", status->server, status->pid,
               status->runtime);
  }
  fmt::print("nodes    {}\nversion  {}\ncontext  {}\nstate    {}\n", ShortList(nodes),
             version::kKubernetes, record->context, state->directory());
  if (!status->explanation.empty()) fmt::print("note     {}\n", status->explanation);
  return 0;
}

int Kubeconfig(const std::string& name) {
  auto state = FindLab(name);
  if (!state) return Report(state.error());
  auto text = ReadFile(state->file("admin.kubeconfig"), kMaxKubeconfig);
  if (!text) return Report(text.error());
  fmt::print("{}", *text);
  return 0;
}

}  // namespace sextant::cli
