#include "cli/preflight.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "api/json.h"
#include "cli/session.h"
#include "client/kubeconfig.h"
#include "preflight/recorder.h"
#include "preflight/walk.h"

namespace sextant::cli {
namespace {

// Ctrl-C: the capability Pod is taken away before the end; the second one ends at once.
volatile std::sig_atomic_t interrupted = 0;

void Interrupt(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
}

int RunRecorder(const PreflightOptions& options) {
  preflight::RecorderOptions recorder;
  recorder.track = options.track;
  recorder.kind = options.kind;
  recorder.experiment_id = options.experiment_id;
  recorder.required = options.require_executables;
  recorder.reason = options.reason;
  recorder.directory = options.evidence_directory;
  const char* path = std::getenv("PATH");
  recorder.path = path ? path : "";
  recorder.command = {"sextant", "preflight",  "--track",         options.track,
                      "--kind",  options.kind, "--experiment-id", options.experiment_id};
  for (const std::string& name : options.require_executables) {
    recorder.command.insert(recorder.command.end(), {"--require-executable", name});
  }
  recorder.command.insert(recorder.command.end(), {"--reason", options.reason});
  auto recording = preflight::Record(recorder, RealClock());
  if (!recording) return Report(recording.error());
  fmt::print("{}", recording->text);
  return 0;
}

}  // namespace

int Preflight(const PreflightOptions& options, Output output) {
  const bool recorder = !options.experiment_id.empty() || !options.track.empty() ||
                        !options.kind.empty() || !options.reason.empty() ||
                        !options.require_executables.empty();
  if (recorder) return RunRecorder(options);
  auto config = client::LoadKubeconfig({.path = options.kubeconfig});
  if (!config) return Report(config.error());
  auto remote = client::OptionsFor(*config, options.context);
  if (!remote) return Report(remote.error());
  const std::string server = remote->server;
  Session session(*std::move(remote));
  Random random(RandomSeed());
  const RealClock clock;
  preflight::WalkOptions walk;
  walk.probe = options.probe;
  walk.ns = client::NamespaceFor(*config, options.context);
  walk.context = options.context.empty() ? config->current_context : options.context;
  walk.server = server;
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, Interrupt);
  walk.sleep = [](Duration d) {
    ::usleep(
        static_cast<useconds_t>(std::chrono::duration_cast<std::chrono::microseconds>(d).count()));
    return interrupted == 0;
  };
  const preflight::Report report = preflight::Walk(session.client(), clock, random, walk);
  if (output == Output::kJson) {
    const api::Object json = preflight::ReportJson(report);
    fmt::print("{}",
               api::ToJson(json.root(), {.indent = 2, .newline = true, .escape_html = false}));
  } else {
    fmt::print(report.error.empty() ? stdout : stderr, "{}", preflight::ReportText(report));
    if (!report.pod_log.empty()) fmt::print("\nlog of the capability Pod:\n{}", report.pod_log);
  }
  return preflight::ExitCode(preflight::VerdictOf(report));
}

}  // namespace sextant::cli
