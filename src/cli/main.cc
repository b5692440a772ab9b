// The command line: arguments to options, nothing else. CLI11 is seen in this file only.
#include <fcntl.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
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
  std::string directory;
  std::string file;
  std::vector<std::string> rest;
  bool all = false;
  bool internal = false;
  bool quiet = false;
  int verbosity = 0;

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

CLI::Validator NumberUpTo(int most) {
  return CLI::Validator(
      [most](const std::string& text) {
        int number = -1;
        const char* end = text.data() + text.size();
        const auto read = std::from_chars(text.data(), end, number);
        const bool good =
            read.ec == std::errc() && read.ptr == end && number >= 0 && number <= most;
        return good ? "" : fmt::format("{}: must be a number from 0 to {}", text, most);
      },
      fmt::format("0 to {}", most));
}

void AddUpOptions(CLI::App& app, UpOptions& up) {
  app.add_option("--config", up.config_file, "a kind v1alpha4 file, - for standard input");
  app.add_option("--wait", up.wait, "wait until the nodes are Ready with their GPUs, e.g. 60s");
  app.add_option("--kubeconfig", up.kubeconfig, "kubeconfig file to add the context to");
}

void DefineUp(CLI::App& app, Parsed& p) {
  CLI::App* up = Sub(app, "up", "Start a lab with simulated GPUs", p, [&p] { return Up(p.up); });
  up->add_option("--name", p.up.name, "name of the lab (default: the file's, else gpu-lab)");
  AddUpOptions(*up, p.up);
  up->add_option("--gpu-pool", p.up.gpu_pools, "NAME=MODEL[:COUNT], repeatable (see models)");
  up->add_option("--gpu-nodes", p.up.gpu_nodes,
                 "which nodes get the first pool: first (worker), all, or NAME,...");
  up->add_option("--gpu-allocation", p.up.gpu_allocation, "plugin or dra")
      ->check(CLI::IsMember({"plugin", "dra"}))
      ->capture_default_str();
  up->add_option("--nodes", p.up.nodes, "number of workers (default 2)")
      ->check(NumberUpTo(static_cast<int>(lab::kMaxNodes) - 1));
  up->add_option("--runtime", p.up.runtime, "how Pods run: processes up to 64 nodes (auto)")
      ->check(CLI::IsMember({"auto", "process", "simulated"}))
      ->capture_default_str();
  up->add_option("--context-name", p.up.context_name, "default: sextant-<name>");
  up->add_option("--listen", p.up.listen, "address of the API server (default 127.0.0.1)");
  up->add_option("--port", p.up.port, "port of the API server (default: a free one)")
      ->check(NumberUpTo(65535));
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

int Refuse(std::string_view what) { return Report(UsageError(what)); }

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

// kind's own flags, with its letters.
void AddKindName(CLI::App& app, std::string& name) {
  app.add_option("-n,--name", name, "the cluster (default: $KIND_CLUSTER_NAME, else kind)");
}

void DefineKindCreate(CLI::App& app, Parsed& p) {
  CLI::App* create = app.add_subcommand("create", "kind's words: create cluster");
  create->require_subcommand(1);
  CLI::App* cluster = Sub(*create, "cluster", "Create a cluster", p, [&p] {
    p.up.as_kind = true;
    return Up(p.up);
  });
  AddKindName(*cluster, p.up.name);
  AddUpOptions(*cluster, p.up);
  cluster->add_option("--image", p.up.image,
                      "node image: a tag of another minor than 1.36 is an error; else no effect, "
                      "nodes are simulated");
  cluster->add_flag("--retain", p.up.retain, "keep what did not start, with its log");
}

void DefineKindDelete(CLI::App& app, Parsed& p) {
  CLI::App* remove = app.add_subcommand("delete", "kind's words: delete cluster, clusters");
  remove->require_subcommand(1);
  CLI::App* one = Sub(*remove, "cluster", "Delete a cluster", p,
                      [&p] { return DeleteCluster(p.name, p.kubeconfig); });
  AddKindName(*one, p.name);
  CLI::App* many = Sub(*remove, "clusters", "Delete the clusters named, or all", p,
                       [&p] { return DeleteClusters(p.rest, p.all, p.kubeconfig); });
  many->add_option("names", p.rest, "names of clusters");
  many->add_flag("-A,--all", p.all, "all of them");
  for (CLI::App* sub : {one, many}) {
    sub->add_option("--kubeconfig", p.kubeconfig, "kubeconfig file to take the context out of");
  }
}

void DefineKindGet(CLI::App& app, Parsed& p) {
  CLI::App* get = app.add_subcommand("get", "kind's words: get clusters, nodes, kubeconfig");
  get->require_subcommand(1);
  CLI::App* clusters =
      Sub(*get, "clusters", "List the clusters", p, [&p] { return GetClusters(p.form()); });
  AddOutput(*clusters, p);
  CLI::App* nodes = Sub(*get, "nodes", "List a cluster's nodes", p,
                        [&p] { return GetClusterNodes(p.name, p.all, p.form()); });
  AddKindName(*nodes, p.name);
  nodes->add_flag("-A,--all-clusters", p.all, "of all clusters");
  AddOutput(*nodes, p);
  CLI::App* config = Sub(*get, "kubeconfig", "Print a cluster's kubeconfig", p, [&p] {
    return p.internal ? Refuse("get kubeconfig --internal: nodes are no containers with a network")
                      : GetKubeconfig(p.name);
  });
  AddKindName(*config, p.name);
  config->add_flag("--internal", p.internal, "refused: a lab's nodes have no network of their own");
}

void DefineKindFiles(CLI::App& app, Parsed& p) {
  CLI::App* out = app.add_subcommand("export", "kind's words: export kubeconfig, logs");
  out->require_subcommand(1);
  CLI::App* config = Sub(*out, "kubeconfig", "Add a cluster's context to the kubeconfig", p,
                         [&p] { return ExportKubeconfig(p.name, p.kubeconfig); });
  AddKindName(*config, p.name);
  config->add_option("--kubeconfig", p.kubeconfig, "kubeconfig file to add the context to");
  CLI::App* logs = Sub(*out, "logs", "Copy the logs of a cluster and its Pods", p,
                       [&p] { return ExportLogs(p.name, p.directory); });
  AddKindName(*logs, p.name);
  logs->add_option("directory", p.directory, "folder for them (default: a new one in /tmp)");
  CLI::App* build = app.add_subcommand("build", "kind's words: refused, nodes have no image");
  build->require_subcommand(1);
  Sub(*build, "node-image", "Refused: a lab's nodes have no image", p, [] {
    return Refuse("build node-image: a lab's nodes have no image");
  })->allow_extras();
  CLI::App* load = app.add_subcommand("load", "kind's words: load docker-image, image-archive");
  load->require_subcommand(1);
  for (const char* what : {"docker-image", "image-archive"}) {
    CLI::App* sub =
        Sub(*load, what, "No effect: a lab pulls no images", p, [&p] { return Load(p.rest); });
    sub->add_option("images", p.rest, "images or archives")->required();
    AddKindName(*sub, p.name);
    sub->add_option("--nodes", p.node, "names of nodes, with commas");
  }
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

void DefineInfo(CLI::App& app, const std::string& program, Parsed& p) {
  AddOutput(*Sub(app, "models", "List the GPU models", p, [&p] { return Models(p.form()); }), p);
  AddOutput(*Sub(app, "version", "Show the version", p, [&p] { return Version(p.form()); }), p);
  CLI::App* smi =
      Sub(app, "nvidia-smi", "What nvidia-smi shows on a node's host; takes its options", p,
          [&p] { return NvidiaSmi(p.name, p.node, p.rest); });
  AddName(*smi, p);
  smi->add_option("--node", p.node, "name of the node")->required();
  smi->allow_extras();
  smi->set_help_flag("--help", "show this text; -h shows nvidia-smi's own");
  CLI::App* completion = Sub(app, "completion", "Print a shell's completion script", p,
                             [&p, program] { return Completion(program, p.shell); });
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
  preflight->add_flag("--probe", o.probe,
                      "run the capability Pod, and after it one with the node's free GPUs");
  preflight->add_option("--track", o.track, "recorder: the track");
  preflight->add_option("--kind", o.kind, "recorder: the kind of experiment");
  preflight->add_option("--experiment-id", o.experiment_id, "recorder: names the evidence file");
  preflight->add_option("--require-executable", o.require_executables,
                        "recorder: a program that must be on PATH, repeatable");
  preflight->add_option("--reason", o.reason, "recorder: why nothing was executed");
  preflight->add_option("--evidence", o.evidence_directory, "folder of evidence files")
      ->capture_default_str();
}

// -q and -v may also stand behind a command. What nvidia-smi gets is its own.
void FallThrough(CLI::App& app) {
  for (CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_name() == "nvidia-smi") continue;
    sub->fallthrough();
    FallThrough(*sub);
  }
}

int Help(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* at = &app;
  std::string name = app.get_name();
  for (const std::string& word : words) {
    const CLI::App* next = nullptr;
    for (const CLI::App* sub : at->get_subcommands({})) {
      if (sub->get_name() == word) next = sub;
    }
    if (!next) return Report(UsageError(fmt::format("there is no command {}", word)));
    name += " " + word;
    at = next;
  }
  // Not at->help(): that of an App delegates to the command that was parsed, which is this one.
  fmt::print("{}", at->get_formatter()->make_help(at, name, CLI::AppFormatMode::Normal));
  return 0;
}

// "sextant up": the words of the commands that were understood, and the one that was not.
struct Path {
  const CLI::App* at;
  std::string words;
  std::string unknown;  // a word where a command should stand
};
Path PathOf(const CLI::App& app, int argc, char** argv) {
  Path path{&app, app.get_name(), ""};
  for (int i = 1;
       i < argc && !path.at->get_subcommands([](const CLI::App*) { return true; }).empty(); ++i) {
    const std::string word = argv[i];
    if (word.starts_with("-")) continue;
    const CLI::App* next = nullptr;
    for (const CLI::App* sub : path.at->get_subcommands([](const CLI::App*) { return true; })) {
      if (sub->get_name() == word) next = sub;
    }
    if (!next) {
      path.unknown = word;
      break;
    }
    path.at = next;
    path.words += " " + word;
  }
  return path;
}

std::string NearestOption(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return Nearest(word.substr(0, word.find('=')), names);
}

int Complain(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
  const Path path = PathOf(app, argc, argv);
  std::string text = error.what();
  if (const size_t newline = text.find('\n'); newline != std::string::npos) text.resize(newline);
  std::string nearest;
  if (!path.unknown.empty()) {
    text = fmt::format("unknown command \"{}\" for \"{}\"", path.unknown, path.words);
    std::vector<std::string> names;
    for (const CLI::App* sub : path.at->get_subcommands([](const CLI::App*) { return true; })) {
      if (!sub->get_group().empty()) names.push_back(sub->get_name());
    }
    nearest = Nearest(path.unknown, names);
  }
  for (int i = 1; i < argc && path.unknown.empty() && nearest.empty(); ++i) {
    const std::string word = argv[i];
    if (!word.starts_with("--") || text.find(word) == std::string::npos) continue;
    nearest = NearestOption(*path.at, word);
    if (nearest == word) nearest.clear();
  }
  fmt::print(stderr, "error: {}\n", text);
  if (!nearest.empty()) fmt::print(stderr, "did you mean {}?\n", nearest);
  fmt::print(stderr, "see {} --help\n", path.words);
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
  app.add_flag("-q,--quiet", p.quiet, "nothing on standard error");
  app.add_option("-v,--verbosity", p.verbosity, "kind's: accepted, there is no more to tell");
  p.up.called_kind = program == "kind";
  DefineUp(app, p);
  DefineLabs(app, p);
  DefineSnapshot(app, p);
  DefineKindCreate(app, p);
  DefineKindDelete(app, p);
  DefineKindGet(app, p);
  DefineKindFiles(app, p);
  DefineNode(app, p);
  DefineInfo(app, program, p);
  DefinePreflight(app, p);
  CLI::App* help = Sub(app, "help", "Show a command's help: help [COMMAND...]", p,
                       [&app, &p] { return Help(app, p.rest); });
  help->add_option("command", p.rest, "the command");
  CLI::App* lab = Sub(app, "__lab", "", p, [&p] {
    auto wait = ParseWait(p.wait);
    if (!wait) return Report(wait.error());
    if (::fcntl(kReportFd, F_GETFD) < 0) {
      return Report(UsageError("only `sextant up` and `sextant start` start this"));
    }
    auto state = lab::LabState::Of(p.name);
    if (!state) return Report(state.error());
    state->Inherit(kLockFd);
    return RunLab(*std::move(state), *wait, false);
  });
  lab->group("");
  AddName(*lab, p);
  lab->add_option("--wait", p.wait);
  FallThrough(app);
  if (argc == 1) {  // as kind and kubectl do
    fmt::print("{}", app.help());
    return 0;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return Complain(app, error, argc, argv);
  }
  if (CLI::App* smi = app.get_subcommand("nvidia-smi"); smi->parsed()) p.rest = smi->remaining();
  if (p.quiet && !std::freopen("/dev/null", "w", stderr)) return 1;
  return p.run();
}

}  // namespace
}  // namespace sextant::cli

int main(int argc, char** argv) { return sextant::cli::Main(argc, argv); }
