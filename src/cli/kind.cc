// kind's words beyond create cluster and delete cluster.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/quote.h"
#include "cli/commands.h"
#include "cli/process.h"
#include "client/kubeconfig.h"
#include "lab/state.h"

namespace sextant::cli {
namespace {

namespace fs = std::filesystem;

// What lies in a folder; nothing where there is none. A link is none: Pods may have made it.
Result<std::vector<fs::path>> In(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  if (fs::symlink_status(folder, error).type() != fs::file_type::directory) return paths;
  fs::directory_iterator it(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) paths.push_back(it->path());
  if (error && error != std::errc::no_such_file_or_directory) {  // it may go meanwhile
    return Fail(FileError("read", folder.string(), error.value()));
  }
  return paths;
}

Status CopyFile(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (fs::symlink_status(from, error).type() != fs::file_type::regular) return {};
  fs::create_directories(to.parent_path(), error);
  if (!error) fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (error && error != std::errc::no_such_file_or_directory) {
    return Fail(FileError("write", to.string(), error.value()));
  }
  return {};
}

// The logs of a lab: its own, and those of its Pods: nodes/<node>/pods/<uid>/logs/<container>/*.
Status CopyLogs(const lab::LabState& state, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to, error);
  if (error) return Fail(FileError("make", to.string(), error.value()));
  RETURN_IF_ERROR(CopyFile(state.file("lab.log"), to / "lab.log"));
  std::vector<fs::path> level = {state.file("nodes")};
  for (const char* below : {"pods", "logs", "", ""}) {
    std::vector<fs::path> next;
    for (const fs::path& folder : level) {
      ASSIGN_OR_RETURN(const std::vector<fs::path> entries, In(folder));
      for (const fs::path& entry : entries) next.push_back(*below ? entry / below : entry);
    }
    level = std::move(next);
  }
  const fs::path nodes = state.file("nodes");
  for (const fs::path& log : level) {
    RETURN_IF_ERROR(CopyFile(log, to / log.lexically_relative(nodes)));
  }
  return {};
}

void PrintNames(const std::vector<std::string>& names, Output output, std::string_view none) {
  if (output == Output::kJson) {
    api::Editor edit;
    edit.Root().SetList();
    for (const std::string& name : names) edit.Root().Append().SetString(name);
    return Print(std::move(edit).Finish());
  }
  if (names.empty()) fmt::print(stderr, "{}\n", none);
  for (const std::string& name : names) fmt::print("{}\n", name);
}

}  // namespace

std::string KindName(const std::string& given) {
  if (!given.empty()) return given;
  const char* name = std::getenv("KIND_CLUSTER_NAME");
  return name && *name ? name : "kind";
}

int GetClusters(Output output) {
  auto names = lab::LabState::List();
  if (!names) return Report(names.error());
  PrintNames(*names, output, "No kind clusters found.");
  return 0;
}

int GetClusterNodes(const std::string& given, bool all, Output output) {
  auto there = lab::LabState::List();
  if (!there) return Report(there.error());
  const std::string one = KindName(given);
  std::vector<std::string> nodes;
  for (const std::string& name : *there) {
    if (!all && name != one) continue;
    auto state = lab::LabState::Of(name);
    if (!state) return Report(state.error());
    auto record = state->Read();
    if (!record) return Report(record.error());
    for (std::string& node : NodeNames(*state, *record)) nodes.push_back(std::move(node));
  }
  PrintNames(nodes, output,
             all ? "No kind nodes for any cluster."
                 : fmt::format("No kind nodes found for cluster {}.", Quote(one)));
  if (nodes.empty() && !there->empty()) {
    fmt::print(stderr, "There are the clusters {} (--name)\n", fmt::join(*there, ", "));
  }
  return 0;
}

int GetKubeconfig(const std::string& given) {
  const std::string name = KindName(given);
  auto state = lab::LabState::Of(name);
  if (!state) return Report(state.error());
  if (state->exists()) return Kubeconfig(name);
  auto there = lab::LabState::List();
  if (!there) return Report(there.error());
  return Report(UsageError(fmt::format(
      "could not locate any control plane nodes for cluster named '{}'. Use the --name option to "
      "select a different cluster{}",
      name, there->empty() ? "" : fmt::format("; there are {}", fmt::join(*there, ", ")))));
}

int DeleteCluster(const std::string& given, const std::string& kubeconfig) {
  const std::string name = KindName(given);
  fmt::print(stderr, "Deleting cluster \"{}\" ...\n", name);
  return Down(name, kubeconfig, true);
}

int DeleteClusters(const std::vector<std::string>& names, bool all, const std::string& kubeconfig) {
  auto there = lab::LabState::List();
  if (!there) return Report(there.error());
  if (!all && names.empty()) {
    return Report(UsageError("delete clusters: name them, or say --all"));
  }
  int status = 0;
  std::vector<std::string> gone;
  for (const std::string& name : all ? *there : names) {
    if (const int one = Down(name, kubeconfig, true); one != 0) {
      status = one;
    } else {
      gone.push_back(Quote(name));
    }
  }
  fmt::print(stderr, "Deleted clusters: [{}]\n", fmt::join(gone, " "));
  return status;
}

int ExportKubeconfig(const std::string& name, const std::string& kubeconfig) {
  auto state = FindLab(KindName(name));
  if (!state) return Report(state.error());
  auto record = state->Read();
  if (!record) return Report(record.error());
  auto own = client::LoadKubeconfig({.path = state->file("admin.kubeconfig")});
  if (!own) return Report(own.error());
  auto options = client::OptionsFor(*own, "");
  if (!options) return Report(options.error());
  auto merged = client::MergeContext({.name = record->context,
                                      .server = options->server,
                                      .ca_pem = options->tls.ca_pem,
                                      .client_cert_pem = options->tls.cert_pem,
                                      .client_key_pem = options->tls.key_pem,
                                      .token = {},
                                      .tls_server_name = {}},
                                     {.path = kubeconfig});
  if (!merged) return Report(merged.error());
  fmt::print(stderr, "Set kubectl context to \"{}\"\n", record->context);
  return 0;
}

int ExportLogs(const std::string& name, const std::string& directory) {
  auto state = FindLab(KindName(name));
  if (!state) return Report(state.error());
  std::string to = directory;
  if (to.empty()) {
    to = (fs::temp_directory_path() / "sextant-logs-XXXXXX").string();
    if (!::mkdtemp(to.data())) return Report(FileError("make", to, errno));
  }
  if (auto copied = CopyLogs(*state, to); !copied) return Report(copied.error());
  fmt::print(stderr, "Exporting logs for cluster \"{}\" to:\n", state->name());
  fmt::print("{}\n", to);
  return 0;
}

int Load(const std::vector<std::string>& images) {
  for (const std::string& image : images) {
    fmt::print(stderr, "note: {}: loading has no effect, a lab pulls no images\n", image);
  }
  return 0;
}

}  // namespace sextant::cli
