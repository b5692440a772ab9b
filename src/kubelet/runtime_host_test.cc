#include "kubelet/runtime_host_test.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/check.h"
#include "kubelet/spawn.h"

namespace sextant::kubelet {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto kPatience = 30s;  // far more than anything takes; then the test fails

TempDir MakeDirectory() {
  Result<TempDir> made = TempDir::Make("sextant-pods");
  CHECK(made.has_value());
  chmod(made->path().c_str(), 0755);
  fs::create_directories(made->path() + "/logs");
  return *std::move(made);
}

}  // namespace

RuntimeHost::RuntimeHost(std::optional<Level> level,
                         std::function<void(ProcessRuntimeOptions&)> change)
    : level_(level),
      change_(std::move(change)),
      directory_(MakeDirectory()),
      loop_("callbacks", clock_) {}

RuntimeHost::~RuntimeHost() { Close(); }

void RuntimeHost::Close() { runtime_.reset(); }

ProcessRuntime& RuntimeHost::runtime() {
  if (runtime_) return *runtime_;
  ProcessRuntimeOptions options{.toolbox = {.directory = directory() + "/runtime"},
                                .force = level_,
                                .log_limits = log_limits};
  if (change_) change_(options);
  runtime_ = std::make_unique<ProcessRuntime>(std::move(options), clock_, loop_);
  AddSandbox("pod", {"10.244.0.5"});
  return *runtime_;
}

bool RuntimeHost::Usable(Level level) {
  if (level == Level::kBuiltIn) return true;
  // Asked once, of a runtime without sandboxes.
  static std::map<Level, std::string>* known = new std::map<Level, std::string>();
  if (!known->contains(level)) {
    ProcessRuntimeOptions options{.toolbox = {.directory = directory() + "/probe"}, .force = level};
    known->emplace(level, ProcessRuntime(std::move(options), clock_, loop_).Explanation());
  }
  why_ = known->at(level);
  return why_.empty();
}

std::string RuntimeHost::LogPath(const std::string& id) const {
  return directory() + "/logs/" + id + ".log";
}

std::string RuntimeHost::MakeVolume(const std::string& name) {
  const std::string path = directory() + "/" + name;
  fs::create_directories(path);
  const Owner owner = runtime().FileOwner();
  CHECK(chown(path.c_str(), owner.uid, owner.gid) == 0);
  return path;
}

void RuntimeHost::AddSandbox(const std::string& uid, std::vector<std::string> ips) {
  const PodSandboxSpec spec{
      .uid = uid, .ns = "default", .name = uid, .hostname = "test-pod", .ips = std::move(ips)};
  (void)Await<Status>([&](auto done) { runtime().CreateSandbox(spec, done); });
}

void RuntimeHost::RemoveSandbox(const std::string& uid) {
  EXPECT_TRUE(Await<Status>([&](auto done) { runtime().RemoveSandbox(uid, done); }));
}

std::string RuntimeHost::Start(ContainerSpec spec) {
  runtime();
  if (spec.id.empty()) spec.id = fmt::format("c{}", ++next_id_);
  if (spec.sandbox_uid.empty()) spec.sandbox_uid = "pod";
  if (spec.log_path.empty()) spec.log_path = LogPath(spec.id);
  const std::string id = spec.id;
  runtime().StartContainer(std::move(spec), [this](const ContainerEvent& event) {
    std::lock_guard lock(mutex_);
    events_[{event.container_id, event.kind}] = event;
    changed_.notify_all();
  });
  return id;
}

ContainerEvent RuntimeHost::WaitForEvent(const std::string& id, ContainerEvent::Kind kind) {
  std::unique_lock lock(mutex_);
  const auto ended = std::pair(id, ContainerEvent::Kind::kExited);
  const bool came = changed_.wait_for(
      lock, kPatience, [&] { return events_.contains({id, kind}) || events_.contains(ended); });
  EXPECT_TRUE(came) << "no event of container " << id;
  if (!events_.contains({id, kind})) {
    ADD_FAILURE() << "container " << id << " ended before: " << events_[ended].message;
    return {};
  }
  return events_[{id, kind}];
}

ContainerEvent RuntimeHost::Started(const std::string& id) {
  return WaitForEvent(id, ContainerEvent::Kind::kStarted);
}

ContainerEvent RuntimeHost::Ended(const std::string& id) {
  return WaitForEvent(id, ContainerEvent::Kind::kExited);
}

ContainerEvent RuntimeHost::RunToEnd(ContainerSpec spec) { return Ended(Start(std::move(spec))); }

std::string RuntimeHost::ReadLog(const std::string& id) {
  std::ifstream file(LogPath(id));
  std::string text;
  for (std::string line; std::getline(file, line);) {
    // "TIME STREAM FLAG TEXT"
    size_t at = 0;
    for (int i = 0; i < 3 && at != std::string::npos; ++i) at = line.find(' ', at) + 1;
    text += line.substr(at) + "\n";
  }
  return text;
}

std::string RuntimeHost::LogOf(ContainerSpec spec) {
  const std::string id = Start(std::move(spec));
  const ContainerEvent end = Ended(id);
  EXPECT_NE(end.reason, "StartError") << end.message;
  return ReadLog(id);
}

void RuntimeHost::WaitFor(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) {
      ADD_FAILURE() << "waited in vain";
      return;
    }
    std::this_thread::sleep_for(5ms);
  }
}

void RuntimeHost::WaitForLog(const std::string& id, const std::string& text) {
  WaitFor([&] { return ReadLog(id).find(text) != std::string::npos; });
  if (testing::Test::HasFailure()) ADD_FAILURE() << "the log: " << ReadLog(id);
}

ExecRun RuntimeHost::Finish(const std::function<std::shared_ptr<Session>(SessionCallbacks)>& begin,
                            const std::string& input,
                            std::optional<std::pair<uint16_t, uint16_t>> size) {
  ExecRun run;
  std::shared_ptr<Session> session;
  run.result = Await<Result<int>>([&](auto done) {
    SessionCallbacks callbacks;
    callbacks.on_stdout = [&](std::string_view data) { run.out += data; };
    callbacks.on_stderr = [&](std::string_view data) { run.err += data; };
    callbacks.on_exit = done;
    session = begin(std::move(callbacks));
    if (size) session->Resize(size->first, size->second);
    if (!input.empty()) EXPECT_TRUE(session->Write(input));
    session->CloseStdin();
  });
  return run;
}

ExecRun RuntimeHost::Exec(ExecSpec spec, const std::string& input,
                          std::optional<std::pair<uint16_t, uint16_t>> size) {
  return Finish(
      [&](SessionCallbacks callbacks) { return runtime().Exec(spec, std::move(callbacks)); }, input,
      size);
}

ExecRun RuntimeHost::Attach(AttachSpec spec, const std::string& input) {
  return Finish(
      [&](SessionCallbacks callbacks) { return runtime().Attach(spec, std::move(callbacks)); },
      input, {});
}

Result<int> RuntimeHost::Dial(const std::string& uid, uint16_t port) {
  return Await<Result<int>>([&](auto done) { runtime().DialPort(uid, port, done); });
}

Result<ContainerStats> RuntimeHost::Stats(const std::string& id) {
  return Await<Result<ContainerStats>>([&](auto done) { runtime().Stats(id, done); });
}

LoopbackServer::LoopbackServer() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  CHECK(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  CHECK(listen(listener_.get(), 8) == 0);
  CHECK(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] {
    for (;;) {
      const Fd client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client.ok()) return;
      (void)!send(client.get(), "reached\n", 8, MSG_NOSIGNAL);
    }
  });
}

LoopbackServer::~LoopbackServer() {
  shutdown(listener_.get(), SHUT_RDWR);
  thread_.join();
}

int CountProcesses(const std::string& mark) {
  int count = 0;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    // By read(2): a process that ends meanwhile is an error, which a stream would throw.
    const Fd file(open((entry->path() / "cmdline").c_str(), O_RDONLY | O_CLOEXEC));
    std::string line(65536, '\0');
    const ssize_t n = file.ok() ? read(file.get(), line.data(), line.size()) : 0;
    line.resize(n > 0 ? static_cast<size_t>(n) : 0);
    if (line.find(mark) != std::string::npos) ++count;
  }
  return count;
}

pid_t StartLab(Level level, const std::string& mark, const std::string& directory) {
  SpawnRequest request{
      .program = "/proc/self/exe",
      .argv = {"lab", "--gtest_filter=Lab.DISABLED_Run", "--gtest_also_run_disabled_tests"},
      .env = {fmt::format("LAB_LEVEL={}", static_cast<int>(level)), "LAB_MARK=" + mark,
              "TMPDIR=" + directory}};
  const Result<Process> process = Spawn(std::move(request));
  CHECK(process.has_value());
  return process->pid;
}

void RunLab() {
  if (!getenv("LAB_MARK")) return;
  RuntimeHost host(static_cast<Level>(atoi(getenv("LAB_LEVEL"))));
  const std::string nap = std::string("sleep ") + getenv("LAB_MARK");
  host.Start({.argv = {"sh", "-c", nap + " & " + nap + " & wait"}});
  for (;;) pause();
}

int RunAsNobody() {
  // By descriptor: nobody may not reach the build directory by its path.
  SpawnRequest request{
      .program = "/usr/bin/setpriv",
      .argv = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/proc/self/fd/10",
               "--gtest_filter=Isolated*:*/Isolated*:"
               "Bubblewrap*:Levels*",
               "--gtest_brief=1"},
      .env = {"SEXTANT_TEST_AS_NOBODY=1", "PATH=/usr/bin:/bin"}};
  request.Give(Fd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)), 10);
  request.Give(Fd(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)), STDOUT_FILENO);
  request.Give(Fd(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)), STDERR_FILENO);
  const Result<Process> process = Spawn(std::move(request));
  if (!process) return -1;
  const int status = Reap(*process);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace sextant::kubelet
