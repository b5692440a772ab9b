// The commands, as functions of plain options. cli/main.cc turns arguments into these; nothing here
// knows how they were written. Each returns the process's exit status:
//   0 done, 1 failed, 2 wrong usage; preflight has its own (see docs/cli.md).
// Results go to standard output, progress and errors to standard error.
#pragma once

#include <string>
#include <vector>

#include "api/document.h"
#include "base/clock.h"
#include "base/status.h"
#include "lab/state.h"

namespace sextant::cli {

enum class Output { kText, kJson };

struct UpOptions {
  std::string name;         // empty: the file's, else "gpu-lab" ("kind" for kind's own words)
  std::string config_file;  // "-": standard input
  std::vector<std::string> gpu_pools;  // NAME=MODEL[:COUNT]
  std::string gpu_nodes;               // first, all, or names with commas
  std::string gpu_allocation = "plugin";
  int nodes = -1;  // workers, without --config; -1: not given
  std::string runtime = "auto";
  std::string wait;  // a Go duration; empty: not
  std::string kubeconfig;
  std::string context_name;
  std::string listen;
  int port = -1;  // -1: not given
  bool ephemeral = false;
  bool foreground = false;
  std::string image;         // kind's: of another minor it is an error
  bool retain = false;       // kind's: keep what did not start, with its log
  bool as_kind = false;      // kind's names and words
  bool called_kind = false;  // the program's own name
};
int Up(const UpOptions& options);

// What --wait says: a Go duration, empty or 0 for not at all, at most a day.
Result<Duration> ParseWait(const std::string& text);

// Where the process of a lab reports to the one that started it: one JSON line when it serves, one
// more after `wait`.
inline constexpr int kReportFd = 3;
// Where it inherits the lab's lock, if that has been taken for it.
inline constexpr int kLockFd = 4;

// The process that runs a lab: started by Up and Start, which hear its reports, or Up itself in the
// `foreground`: a new lab, locked, that tells its user how it goes and is removed again if it does
// not come up.
int RunLab(lab::LabState state, Duration wait, bool foreground);

int Down(const std::string& name, const std::string& kubeconfig, bool as_kind);
int Stop(const std::string& name);
int Start(const std::string& name, const std::string& wait);
int List(Output output);
int LabStatusOf(const std::string& name, Output output);
int Kubeconfig(const std::string& name);
// As the API shows them, of a lab that does not run as it was configured.
std::vector<std::string> NodeNames(const lab::LabState& state, const lab::LabRecord& record);
void Print(const api::Object& object);  // as JSON

// kind's words beyond those.
std::string KindName(const std::string& given);  // --name, else $KIND_CLUSTER_NAME, else "kind"
int GetClusters(Output output);                  // names only, as kind prints them
int GetClusterNodes(const std::string& name, bool all, Output output);
int GetKubeconfig(const std::string& name);
int DeleteCluster(const std::string& name, const std::string& kubeconfig);
int DeleteClusters(const std::vector<std::string>& names, bool all, const std::string& kubeconfig);
int ExportKubeconfig(const std::string& name, const std::string& kubeconfig);
int ExportLogs(const std::string& name, const std::string& directory);  // empty: a new one in /tmp
int Load(const std::vector<std::string>& images);

enum class NodeAction { kAdd, kRemove, kStop, kStart };
int Node(NodeAction action, const std::string& name, const std::string& node);

int SnapshotSave(const std::string& name, const std::string& file);
int SnapshotRestore(const std::string& file);

int Models(Output output);
int NvidiaSmi(const std::string& name, const std::string& node,
              const std::vector<std::string>& arguments);
int Version(Output output);

// "error: <message>" on standard error; 2 for what the user got wrong, else 1.
int Report(const Error& error);

}  // namespace sextant::cli
