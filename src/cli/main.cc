// The command line: arguments to options, nothing else. CLI11 is seen in this file only.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>

#include "base/nearest.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/preflight.h"

namespace sextant::cli {
namespace {

constexpr int kUsage = 2;

struct Parsed {
  std::function<int()> run;
  UpOptions up;
  PreflightOptions preflight;
  std::string name;
  std::string kubeconfig;
  std::string wait;
  std::string output = "text";
  std::string node;
  std::string shell;
  std::string file;
  std::vector<std::string> rest;
  bool ignored = false;

  Output form() const { return output == "json" ? Output::kJson : Output::kText; }
};

void AddName(CLI::App& app, Parsed& p) {
  app.add_option("--name", p.name, "the lab (default: the only one, or gpu-lab)");
}
void AddOutput(CLI::App& app, Parsed& p) {
  app.add_option("-o,--output", p.output, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
}

CLI::App* Sub(CLI::App& app, const char* name, const char* help, Parsed& p,
              std::function<int()> run) {
  CLI::App* sub = app.add_subcommand(name, help);
  sub->callback([&p, run = std::move(run)] { p.run = run; });
  return sub;
}

void AddUpOptions(CLI::App& app, UpOptions& up) {
  app.add_option("--name", up.name, "name of the lab");
  app.add_option("--config", up.config_file, "a kind v1alpha4 file, - for standard input");
  app.add_option("--wait", up.wait, "wait until the nodes are Ready with their GPUs, e.g. 60s");
  app.add_option("--kubeconfig", up.kubeconfig, "kubeconfig file to add the context to");
}

void DefineUp(CLI::App& app, Parsed& p) {
  CLI::App* up = Sub(app, "up", "Start a lab with simulated GPUs", p, [&p] { return Up(p.up); });
  AddUpOptions(*up, p.up);
  up->add_option("--gpu-pool", p.up.gpu_pools, "NAME=MODEL[:COUNT], repeatable (see models)");
  up->add_option("--gpu-nodes", p.up.gpu_nodes,
                 "which nodes get the first pool: first (worker), all, or NAME,...");
  up->add_option("--gpu-allocation", p.up.gpu_allocation, "plugin or dra")
      ->check(CLI::IsMember({"plugin", "dra"}))
      ->capture_default_str();
  up->add_option("--nodes", p.up.nodes, "number of workers (default 2)");
  up->add_option("--runtime", p.up.runtime, "auto, process or simulated")->capture_default_str();
  up->add_option("--context-name", p.up.context_name, "default: sextant-<name>");
  up->add_option("--listen", p.up.listen, "address of the API server (default 127.0.0.1)");
  up->add_option("--port", p.up.port, "port of the API server (default: a free one)")
      ->check(CLI::Range(0, 65535));
  up->add_flag("--ephemeral", p.up.ephemeral, "keep the state in memory, gone with the process");
  up->add_flag("--foreground", p.up.foreground, "serve in this process until Ctrl-C");
}

void DefineLabs(CLI::App& app, Parsed& p) {
  CLI::App* down = Sub(app, "down", "Take a lab down and remove its state", p,
                       [&p] { return Down(p.name, p.kubeconfig, false); });
  AddName(*down, p);
  down->add_option("--kubeconfig", p.kubeconfig, "kubeconfig file to take the context out of");
  AddName(*Sub(app, "stop", "Stop a lab; its state is kept", p, [&p] { return Stop(p.name); }), p);
  CLI::App* start =
      Sub(app, "start", "Start a stopped lab", p, [&p] { return Start(p.name, p.wait); });
  AddName(*start, p);
  start->add_option("--wait", p.wait, "wait until the nodes are Ready with their GPUs");
  AddOutput(*Sub(app, "list", "List the labs", p, [&p] { return List(p.form()); }), p);
  CLI::App* status = Sub(app, "status", "Show a lab: process, server, nodes, runtime", p,
                         [&p] { return LabStatusOf(p.name, p.form()); });
  AddName(*status, p);
  AddOutput(*status, p);
  AddName(
      *Sub(app, "kubeconfig", "Print a lab's kubeconfig", p, [&p] { return Kubeconfig(p.name); }),
      p);
}

void DefineSnapshot(CLI::App& app, Parsed& p) {
  CLI::App* snapshot = app.add_subcommand("snapshot", "Keep a lab in a file, and put it back");
  snapshot->require_subcommand(1);
  CLI::App* save = Sub(*snapshot, "save", "Save a lab, running or not, in one file", p,
                       [&p] { return SnapshotSave(p.name, p.file); });
  save->add_option("file", p.file, "where to")->required();
  AddName(*save, p);
  CLI::App* restore = Sub(*snapshot, "restore", "Put a saved lab back under its name, stopped", p,
                          [&p] { return SnapshotRestore(p.file); });
  restore->add_option("file", p.file, "what save has written")->required();
}

void DefineKind(CLI::App& app, Parsed& p) {
  CLI::App* create = app.add_subcommand("create", "kind's words: create cluster");
  create->require_subcommand(1);
  CLI::App* cluster = Sub(*create, "cluster", "Create a cluster", p, [&p] {
    p.up.as_kind = true;
    return Up(p.up);
  });
  AddUpOptions(*cluster, p.up);
  cluster->add_option("--image", p.rest, "ignored: nodes are simulated")->expected(1);
  cluster->add_flag("--retain", p.ignored, "ignored: nothing is left of what did not start");
  CLI::App* remove = app.add_subcommand("delete", "kind's words: delete cluster");
  remove->require_subcommand(1);
  CLI::App* gone = Sub(*remove, "cluster", "Delete a cluster", p,
                       [&p] { return Down(p.name.empty() ? "kind" : p.name, p.kubeconfig, true); });
  AddName(*gone, p);
  gone->add_option("--kubeconfig", p.kubeconfig, "kubeconfig file to take the context out of");
  CLI::App* get = app.add_subcommand("get", "kind's words: get clusters, nodes, kubeconfig");
  get->require_subcommand(1);
  Sub(*get, "clusters", "List the clusters", p, [] { return GetClusters(); });
  CLI::App* nodes =
      Sub(*get, "nodes", "List a cluster's nodes", p, [&p] { return GetNodes(p.name, p.form()); });
  AddName(*nodes, p);
  AddOutput(*nodes, p);
  AddName(*Sub(*get, "kubeconfig", "Print a cluster's kubeconfig", p,
               [&p] { return Kubeconfig(p.name); }),
          p);
}

void DefineNode(CLI::App& app, Parsed& p) {
  CLI::App* node = app.add_subcommand("node", "Nodes of a running lab");
  node->require_subcommand(1);
  const std::tuple<const char*, const char*, NodeAction> actions[] = {
      {"add", "Add a simulated node", NodeAction::kAdd},
      {"remove", "Remove a node", NodeAction::kRemove},
      {"stop", "Switch a node off, as pulling its plug would", NodeAction::kStop},
      {"start", "Switch a node on again", NodeAction::kStart}};
  for (const auto& [name, help, action] : actions) {
    CLI::App* sub =
        Sub(*node, name, help, p, [&p, chosen = action] { return Node(chosen, p.name, p.node); });
    sub->add_option("node", p.node, "name of the node")->required();
    AddName(*sub, p);
  }
}

void DefineInfo(CLI::App& app, Parsed& p) {
  AddOutput(*Sub(app, "models", "List the GPU models", p, [&p] { return Models(p.form()); }), p);
  AddOutput(*Sub(app, "version", "Show the version", p, [&p] { return Version(p.form()); }), p);
  CLI::App* smi = Sub(app, "nvidia-smi", "What nvidia-smi shows on a node's host", p,
                      [&p] { return NvidiaSmi(p.name, p.node, p.rest); });
  AddName(*smi, p);
  smi->add_option("--node", p.node, "name of the node")->required();
  smi->allow_extras();
  smi->prefix_command();
  CLI::App* completion = Sub(app, "completion", "Print a shell's completion script", p,
                             [&p] { return Completion(p.shell); });
  completion->add_option("shell", p.shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

void DefinePreflight(CLI::App& app, Parsed& p) {
  PreflightOptions& o = p.preflight;
  CLI::App* preflight = Sub(app, "preflight", "Walk the six layers and name the lowest broken one",
                            p, [&p] { return Preflight(p.preflight, p.form()); });
  AddOutput(*preflight, p);
  preflight->add_option("--context", o.context, "context of the kubeconfig");
  preflight->add_option("--kubeconfig", o.kubeconfig, "kubeconfig file");
  preflight->add_flag("--probe", o.probe, "run the capability Pod");
  preflight->add_option("--track", o.track, "recorder: the track");
  preflight->add_option("--kind", o.kind, "recorder: the kind of experiment");
  preflight->add_option("--experiment-id", o.experiment_id, "recorder: names the evidence file");
  preflight->add_option("--require-executable", o.require_executables,
                        "recorder: a program that must be on PATH, repeatable");
  preflight->add_option("--reason", o.reason, "recorder: why nothing was executed");
  preflight->add_option("--evidence", o.evidence_directory, "folder of evidence files")
      ->capture_default_str();
}

// "sextant stauts": the nearest command.
std::string Suggest(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands({})) names.push_back(sub->get_name());
  return Nearest(word, names);
}

std::string SuggestOption(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  const CLI::App* deepest = &app;
  while (!deepest->get_subcommands().empty()) deepest = deepest->get_subcommands().back();
  for (const CLI::Option* option : deepest->get_options({})) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::string bare = word.substr(0, word.find('='));
  return bare.starts_with("--") ? Nearest(bare, names) : Suggest(*deepest, word);
}

int Complain(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
  std::string text = error.what();
  if (const size_t newline = text.find('\n'); newline != std::string::npos) text.resize(newline);
  fmt::print(stderr, "error: {}\n", text);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) || argc > 1) {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (text.find(word) == std::string::npos) continue;
      const std::string nearest = SuggestOption(app, word);
      if (!nearest.empty() && nearest != word) {
        fmt::print(stderr, "did you mean {}?\n", nearest);
        break;
      }
    }
  }
  fmt::print(stderr, "see {} --help\n", argv[0]);
  return kUsage;
}

int Main(int argc, char** argv) {
  Parsed p;
  const char* slash = std::strrchr(argv[0], '/');
  const std::string program = slash ? slash + 1 : argv[0];
  CLI::App app{
      "Kubernetes with simulated GPUs, the GPU node agent, and the layer-by-layer preflight",
      program};
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string(version::kSextant));
  DefineUp(app, p);
  DefineLabs(app, p);
  DefineSnapshot(app, p);
  DefineKind(app, p);
  DefineNode(app, p);
  DefineInfo(app, p);
  DefinePreflight(app, p);
  CLI::App* lab = Sub(app, "__lab", "", p, [&p] { return RunLab(p.name, p.wait); });
  lab->group("");
  AddName(*lab, p);
  lab->add_option("--wait", p.wait);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return Complain(app, error, argc, argv);
  }
  if (CLI::App* smi = app.get_subcommand("nvidia-smi"); smi->parsed()) p.rest = smi->remaining();
  return p.run();
}

}  // namespace
}  // namespace sextant::cli

int main(int argc, char** argv) { return sextant::cli::Main(argc, argv); }
