#include "client/exec_credential.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "api/json.h"

extern char** environ;

namespace sextant::client {
namespace {

constexpr size_t kMaxOutput = size_t{1} << 20;
constexpr size_t kMaxArguments = 1000;
constexpr std::string_view kGroup = "client.authentication.k8s.io/";
constexpr int kNotFoundExit = 127;

std::string ExecInfo(std::string_view api_version, api::Value plugin, api::Value cluster) {
  api::Editor edit;
  edit.Root().Set("kind", "ExecCredential");
  edit.Root().Set("apiVersion", api_version);
  edit["spec"].Set("interactive", false);
  if (plugin["provideClusterInfo"].AsBool()) {
    const api::Mut info = edit["spec"]["cluster"];
    for (const char* field : {"server", "tls-server-name", "insecure-skip-tls-verify",
                              "certificate-authority-data", "disable-compression"}) {
      if (!cluster.Has(field)) continue;
      info[field].Set(cluster[field]);
    }
    for (api::Value extension : cluster["extensions"].items()) {
      if (extension["name"].AsString() == "client.authentication.k8s.io/exec")
        info["config"].Set(extension["extension"]);
    }
  }
  return api::ToJson(std::move(edit).Finish().root());
}

class Program {
 public:
  Program(api::Value plugin, const std::string& folder, const std::string& exec_info) {
    std::string command(plugin["command"].AsString());
    if (command.find('/') != std::string::npos && command[0] != '/')
      command = folder + "/" + command;
    args_.push_back(command);
    for (api::Value arg : plugin["args"].items())
      if (args_.size() < kMaxArguments) args_.emplace_back(arg.AsString());
    for (char** variable = environ; *variable; ++variable) env_.emplace_back(*variable);
    for (api::Value variable : plugin["env"].items()) {
      if (env_.size() >= kMaxArguments) break;
      env_.push_back(
          fmt::format("{}={}", variable["name"].AsString(), variable["value"].AsString()));
    }
    env_.push_back("KUBERNETES_EXEC_INFO=" + exec_info);
  }

  // What it printed.
  Result<std::string> Run() {
    int out[2];
    if (pipe2(out, O_CLOEXEC) != 0) return Fail(UsageError("exec: no pipe"));
    const int spawned = Spawn(out[1]);
    close(out[1]);
    if (spawned != 0) {
      close(out[0]);
      return Fail(Unusable(spawned));
    }
    std::string output;
    const bool ended = ReadAll(out[0], &output);
    close(out[0]);
    if (!ended) kill(pid_, SIGKILL);
    int status = 0;
    waitpid(pid_, &status, 0);
    if (!ended) {
      return Fail(
          UsageError(fmt::format("exec: executable {} did not end within {} or said too much",
                                 args_[0], FormatDuration(kPluginPatience))));
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNotFoundExit) return Fail(Unusable(ENOENT));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      return Fail(
          UsageError(fmt::format("exec: executable {} failed with exit code {}", args_[0], code)));
    }
    return output;
  }

 private:
  static std::vector<char*> Pointers(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
  }

  int Spawn(int out) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    const int error = posix_spawnp(&pid_, args_[0].c_str(), &actions, &attributes,
                                   Pointers(args_).data(), Pointers(env_).data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
  }

  static bool ReadAll(int fd, std::string* output) {
    const RealClock clock;
    const Duration deadline = clock.Monotonic() + kPluginPatience;
    char buffer[4096];
    for (;;) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock.Monotonic());
      pollfd ready{fd, POLLIN, 0};
      const int polled = left.count() > 0 ? poll(&ready, 1, static_cast<int>(left.count())) : 0;
      if (polled < 0 && errno == EINTR) continue;
      if (polled <= 0) return false;
      const ssize_t n = read(fd, buffer, sizeof buffer);
      if (n == 0) return true;
      if (n < 0 && errno != EINTR) return false;
      if (n > 0) output->append(buffer, static_cast<size_t>(n));
      if (output->size() > kMaxOutput) return false;
    }
  }

  Error Unusable(int error) const {
    return UsageError(error == ENOENT ? fmt::format("exec: executable {} not found", args_[0])
                                      : fmt::format("exec: {}: {}", args_[0], strerror(error)));
  }

  std::vector<std::string> args_;
  std::vector<std::string> env_;
  pid_t pid_ = -1;
};

Result<ExecCredential> CredentialIn(const std::string& output, std::string_view api_version) {
  const Result<api::Object> answer = api::ParseJson(output);
  if (!answer) return Fail(UsageError("decoding stdout: " + answer.error().message));
  if (answer->kind() != "ExecCredential" || answer->api_version() != api_version) {
    return Fail(UsageError(
        fmt::format("exec plugin is configured to use API version {}, plugin returned version {}",
                    api_version, answer->api_version())));
  }
  const api::Value status = (*answer)["status"];
  if (!status.IsMap()) return Fail(UsageError("exec plugin didn't return a status field"));
  ExecCredential credential;
  credential.token = status["token"].AsString();
  credential.client_cert_pem = status["clientCertificateData"].AsString();
  credential.client_key_pem = status["clientKeyData"].AsString();
  if (credential.client_cert_pem.empty() != credential.client_key_pem.empty())
    return Fail(UsageError("exec plugin returned only certificate or key, not both"));
  if (credential.token.empty() && credential.client_cert_pem.empty())
    return Fail(UsageError("exec plugin didn't return a token or cert/key pair"));
  return credential;
}

}  // namespace

Result<ExecCredential> RunCredentialPlugin(api::Value plugin, const std::string& folder,
                                           api::Value cluster) {
  const std::string_view api_version = plugin["apiVersion"].AsString();
  if (plugin["command"].AsString().empty())
    return Fail(UsageError("command must be specified to use exec authentication plugin"));
  if (api_version != std::string(kGroup) + "v1" && api_version != std::string(kGroup) + "v1beta1")
    return Fail(UsageError(fmt::format("exec plugin: invalid apiVersion \"{}\"", api_version)));
  if (plugin["interactiveMode"].AsString() == "Always") {
    return Fail(UsageError(
        "exec plugin cannot support interactive mode: sextant runs it without a terminal"));
  }
  Program program(plugin, folder, ExecInfo(api_version, plugin, cluster));
  ASSIGN_OR_RETURN(const std::string output, program.Run());
  Result<ExecCredential> credential = CredentialIn(output, api_version);
  if (!credential && !plugin["installHint"].AsString().empty())
    credential.error().message += fmt::format("\n\n{}", plugin["installHint"].AsString());
  return credential;
}

}  // namespace sextant::client
