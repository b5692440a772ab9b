// The process of a lab: `sextant __lab`, or `sextant up --foreground`.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "api/json.h"
#include "base/file.h"
#include "cli/commands.h"
#include "client/kubeconfig.h"
#include "lab/lab.h"
#include "lab/state.h"

namespace sextant::cli {
namespace {

// Tells the process that started this one, if it listens.
void Tell(bool listens, const api::Object& report) {
  if (!listens) return;
  const std::string line = api::ToJson(report.root(), {.newline = true});
  (void)!::write(kReportFd, line.data(), line.size());
}

api::Object ErrorReport(const std::string& message) {
  api::Editor edit;
  edit.Root().Set("error", message);
  return std::move(edit).Finish();
}

api::Object AccessReport(const lab::Access& access) {
  api::Editor edit;
  edit.Root().Set("server", access.server);
  edit.Root().Set("ca", access.ca_pem);
  edit.Root().Set("certificate", access.admin.cert_pem);
  edit.Root().Set("key", access.admin.key_pem);
  return std::move(edit).Finish();
}

client::ContextEntry EntryOf(const lab::LabRecord& record, const lab::Access& access) {
  return {.name = record.context,
          .server = access.server,
          .ca_pem = access.ca_pem,
          .client_cert_pem = access.admin.cert_pem,
          .client_key_pem = access.admin.key_pem,
          .token = {},
          .tls_server_name = {}};
}

// The signals that end a lab, blocked in every thread and taken by this one.
sigset_t EndSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

Result<std::unique_ptr<lab::Lab>> Serve(lab::LabState& state, lab::LabRecord& record) {
  RETURN_IF_ERROR(state.Lock());
  ASSIGN_OR_RETURN(auto lab, lab::Lab::Start(record.config, {state.directory(), record.ephemeral}));
  // The port stays the same over stop and start.
  const std::string& server = lab->access().server;
  if (record.config.port == 0) {
    record.config.port = std::atoi(server.c_str() + server.rfind(':') + 1);
    RETURN_IF_ERROR(state.Write(record));
  }
  RETURN_IF_ERROR(WriteFileAtomic(state.file("admin.kubeconfig"),
                                  client::KubeconfigText(EntryOf(record, lab->access())), 0600));
  RETURN_IF_ERROR(
      state.WriteStatus({::getpid(), server, lab->runtime_level(), lab->runtime_explanation()}));
  return lab;
}

}  // namespace

int RunLab(lab::LabState state, Duration wait, bool foreground) {
  const bool listens = !foreground;
  if (listens) ::fcntl(kReportFd, F_SETFD, FD_CLOEXEC);
  ::signal(SIGPIPE, SIG_IGN);
  const sigset_t signals = EndSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  auto record = state.Read();
  auto lab = record ? Serve(state, *record) : Fail(record.error());
  if (!lab) {
    Tell(listens, ErrorReport(lab.error().message));
    if (foreground) (void)state.Remove();
    return Report(lab.error());
  }
  Tell(listens, AccessReport((*lab)->access()));
  if (!listens) {
    auto merged =
        client::MergeContext(EntryOf(*record, (*lab)->access()), {.path = record->kubeconfig});
    if (!merged) {
      lab->reset();
      if (foreground) (void)state.Remove();
      return Report(merged.error());
    }
    fmt::print(stderr, "serving {} as context {}; end with Ctrl-C\n", (*lab)->access().server,
               record->context);
  }
  std::optional<Error> fatal;  // written on a loop of the lab, read when those have ended
  (*lab)->OnFatal([&fatal](Error error) {
    fatal = std::move(error);
    ::kill(::getpid(), SIGTERM);
  });
  if (wait > Duration{0}) {
    // A signal that came meanwhile stays pending, for sigwait below.
    const auto signalled = [&signals] {
      sigset_t pending;
      sigset_t both;
      return ::sigpending(&pending) == 0 && ::sigandset(&both, &pending, &signals) == 0 &&
             ::sigisemptyset(&both) == 0;
    };
    auto ready = (*lab)->WaitReady(wait, signalled);
    Tell(listens, ready ? AccessReport((*lab)->access()) : ErrorReport(ready.error().message));
    if (!listens && !signalled()) {
      fmt::print(stderr, "{}\n", ready ? "ready" : "WARNING: " + ready.error().message);
    }
  }
  if (listens) ::close(kReportFd);
  int signal = 0;
  sigwait(&signals, &signal);
  (*lab)->Stop();
  lab->reset();
  if (record->ephemeral) {  // nothing of it stays, its context neither
    (void)client::RemoveContext(record->context, {.path = record->kubeconfig});
    (void)state.Remove();
  }
  return fatal ? Report(*fatal) : 0;
}

}  // namespace sextant::cli
