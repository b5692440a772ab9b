// Real containers, at each isolation level and as two users. What a machine forbids is skipped
// aloud.
#include "kubelet/process_runtime.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "gpu/inventory.h"
#include "kubelet/runtime_host_test.h"

namespace sextant::kubelet {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// ---- What holds at both levels with processes

class Isolated : public testing::TestWithParam<Level> {
 protected:
  void SetUp() override {
    if (GetParam() == Level::kBuiltIn) return;
    if (!host_.Usable(GetParam())) GTEST_SKIP() << host_.why();
  }
  RuntimeHost host_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Levels, Isolated, testing::Values(Level::kBubblewrap, Level::kLandlock),
                         [](const auto& info) { return std::string(LevelName(info.param)); });

TEST_P(Isolated, ReportsItsLevel) { EXPECT_EQ(host_.runtime().Level(), LevelName(GetParam())); }

TEST_P(Isolated, ExitCodes) {
  struct Case {
    std::vector<std::string> argv;
    int code;
    std::string reason;
  };
  for (const Case& c : {Case{{"true"}, 0, "Completed"}, Case{{"false"}, 1, "Error"},
                        Case{{"sh", "-c", "exit 42"}, 42, "Error"},
                        Case{{"/bin/sh", "-c", "exit 3"}, 3, "Error"}}) {
    const ContainerEvent end = host_.RunToEnd({.argv = c.argv});
    EXPECT_EQ(end.exit_code, c.code) << c.argv.back() << end.message;
    EXPECT_EQ(end.reason, c.reason);
    EXPECT_FALSE(end.simulated);
    EXPECT_GE(end.finished_at, end.started_at);
  }
}

TEST_P(Isolated, OutputIsTheLog) {
  EXPECT_EQ(host_.LogOf({.argv = {"bash", "-lc", "echo out; echo err >&2"}}), "out\nerr\n");
}

TEST_P(Isolated, EnvironmentIsTheContainersOwn) {
  setenv("SEXTANT_TEST_SECRET", "of the lab", 1);
  const std::string log =
      host_.LogOf({.argv = {"env"}, .env = {"GREETING=hello world", "LD_PRELOAD=/nowhere.so"}});
  EXPECT_NE(log.find("GREETING=hello world\n"), std::string::npos) << log;
  EXPECT_NE(log.find("HOSTNAME=test-pod\n"), std::string::npos) << log;
  EXPECT_EQ(log.find("SEXTANT_TEST_SECRET"), std::string::npos) << log;
}

TEST_P(Isolated, UnknownProgramIsSimulated) {
  const std::string id = host_.Start({.image = "nginx", .argv = {"nginx", "-g", "daemon off;"}});
  const ContainerEvent started = host_.Started(id);
  EXPECT_TRUE(started.simulated);
  EXPECT_EQ(started.message, "the toolbox has no program \"nginx\"");
  host_.runtime().StopContainer(id, SIGTERM, 30s);
  EXPECT_EQ(host_.Ended(id).exit_code, 128 + SIGTERM);
}

TEST_P(Isolated, GraceThenKill) {
  const std::string stubborn = host_.Start(
      {.argv = {"sh", "-c", "trap 'echo no' TERM; echo ready; while :; do sleep 1; done"}});
  host_.WaitForLog(stubborn, "ready");
  host_.runtime().StopContainer(stubborn, SIGTERM, 200ms);
  EXPECT_EQ(host_.Ended(stubborn).exit_code, 137);
  EXPECT_EQ(host_.Ended(stubborn).signal, SIGKILL);

  const std::string polite = host_.Start(
      {.argv = {"sh", "-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.1; done"}});
  host_.WaitForLog(polite, "ready");
  host_.runtime().StopContainer(polite, SIGTERM, 60s);
  EXPECT_EQ(host_.Ended(polite).exit_code, 7);
}

TEST_P(Isolated, NothingOfTheUserIsSeen) {
  const std::string secret = host_.directory() + "/secret";
  std::ofstream(secret) << "secret of the user";
  chmod(secret.c_str(), 0644);
  chmod(host_.directory().c_str(), 0755);
  const std::string log =
      host_.LogOf({.argv = {"sh", "-c",
                            "cat " + secret +
                                "; cat /etc/shadow; ls /work /home/* /root/*; ls -A /var/lib; "
                                "cat /proc/" +
                                std::to_string(getpid()) + "/environ; echo end"}});
  EXPECT_EQ(log.find("secret of"), std::string::npos) << log;
  EXPECT_EQ(log.find("SEXTANT"), std::string::npos) << log;
  EXPECT_EQ(log.find("root:"), std::string::npos) << log;
  EXPECT_EQ(log.find("dpkg"), std::string::npos) << log;
  EXPECT_NE(log.find("end\n"), std::string::npos) << log;
}

TEST_P(Isolated, NoNetworkOfTheUser) {
  // A server on the machine's loopback that the Pod must not reach.
  LoopbackServer server;
  const std::string log =
      host_.LogOf({.argv = {"sh", "-c",
                            fmt::format("nc -w 2 127.0.0.1 {} </dev/null || echo refused; "
                                        "nc -w 2 192.0.2.1 80 </dev/null || echo refused",
                                        server.port())}});
  EXPECT_EQ(log.find("reached"), std::string::npos) << log;
  EXPECT_NE(log.find("refused\n"), std::string::npos) << log;
}

TEST_P(Isolated, ForkBombIsBounded) {
  const std::string id = host_.Start(
      {.argv = {"bash", "-c", "i=0; while [ $i -lt 300 ]; do sleep 30 & i=$((i+1)); done; wait"},
       .limits = {.pids = 40}});
  host_.WaitForLog(id, "Resource temporarily unavailable");
  host_.runtime().StopContainer(id, SIGKILL, 0s);
  EXPECT_EQ(host_.Ended(id).exit_code, 137);
}

TEST_P(Isolated, MemoryIsBounded) {
  // Grows slowly, then stays: it is seen.
  const ContainerEvent slow = host_.RunToEnd(
      {.argv = {"bash", "-c", "x=$(head -c 40000000 /dev/zero | tr '\\0' a); sleep 1000"},
       .limits = {.memory_bytes = 32 << 20}});
  EXPECT_EQ(slow.exit_code, 137);
  EXPECT_EQ(slow.reason, "OOMKilled");
  // Grows without end, perhaps faster than anybody looks: the kernel refuses.
  const ContainerEvent fast =
      host_.RunToEnd({.argv = {"bash", "-c", "x=a; while :; do x=$x$x; done"},
                      .limits = {.memory_bytes = 16 << 20}});
  EXPECT_NE(fast.exit_code, 0);
}

// A kill that meets a half-made sandbox leaves nothing behind.
TEST_P(Isolated, StopRightAfterTheStart) {
  const std::string mark = fmt::format("{}.75", 300000 + getpid());
  for (int i = 0; i < 20; ++i) {
    const std::string id = host_.Start({.argv = {"sleep", mark}});
    if (i % 2) usleep(static_cast<useconds_t>(i) * 1500);
    host_.runtime().StopContainer(id, SIGKILL, 0s);
    EXPECT_NE(host_.Ended(id).exit_code, 0);
  }
  host_.WaitFor([&] { return CountProcesses(mark) == 0; });
  EXPECT_EQ(CountProcesses(host_.directory()), 0);
}

TEST_P(Isolated, ExecEndsWithItsContainer) {
  const std::string id = host_.Start({.argv = {"sleep", "1"}});
  host_.Started(id);
  ExecRun run = host_.Exec({.container_id = id, .argv = {"sleep", "1000"}});
  EXPECT_EQ(run.result.value_or(-1), 137);
}

TEST_P(Isolated, LogFloodIsBounded) {
  host_.log_limits = {.max_file_bytes = 1 << 20, .max_files = 3};
  const std::string id = host_.Start({.argv = {"yes", "a flood of text"}});
  host_.WaitFor([&] { return fs::exists(host_.LogPath(id) + ".2"); });
  host_.runtime().StopContainer(id, SIGKILL, 0s);
  host_.Ended(id);
  uint64_t total = 0;
  int files = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(host_.LogPath(id)).parent_path())) {
    if (!entry.path().filename().string().starts_with(id)) continue;
    total += entry.file_size();
    ++files;
  }
  EXPECT_LE(files, 3);
  EXPECT_LE(total, 3u << 20);
}

TEST_P(Isolated, ExecRunsBesideTheContainer) {
  const std::string id = host_.Start({.argv = {"sleep", "1000"}, .env = {"COLOUR=blue"}});
  host_.Started(id);
  ExecRun run =
      host_.Exec({.container_id = id, .argv = {"sh", "-c", "echo $COLOUR; echo e >&2; exit 5"}});
  EXPECT_EQ(run.out, "blue\n");
  EXPECT_EQ(run.err, "e\n");
  ASSERT_TRUE(run.result) << run.result.error().message;
  EXPECT_EQ(*run.result, 5);
}

TEST_P(Isolated, ExecReadsItsInput) {
  const std::string id = host_.Start({.argv = {"sleep", "1000"}});
  host_.Started(id);
  ExecRun run = host_.Exec({.container_id = id, .argv = {"sort"}, .use_stdin = true}, "b\na\n");
  EXPECT_EQ(run.out, "a\nb\n");
  EXPECT_EQ(run.result.value_or(-1), 0);
}

// As `kubectl cp` does it: much input, more than fits at once.
TEST_P(Isolated, ExecTakesMuchInput) {
  const std::string id = host_.Start({.argv = {"sleep", "1000"}});
  host_.Started(id);
  const std::string block(700'000, 'x');
  std::atomic<int> written = 0;
  std::atomic<bool> ended = false;
  std::string out;
  std::shared_ptr<Session> session;
  std::mutex mutex;  // the session is known before it is written to
  const auto feed = [&] {
    std::lock_guard lock(mutex);
    while (written < 10 && session->Write(block)) ++written;
    if (written == 10) session->CloseStdin();
  };
  SessionCallbacks callbacks;
  callbacks.on_stdout = [&](std::string_view data) { out += data; };
  callbacks.on_exit = [&](Result<int>) { ended = true; };
  callbacks.on_writable = feed;
  {
    std::lock_guard lock(mutex);
    session = host_.runtime().Exec({.container_id = id, .argv = {"wc", "-c"}, .use_stdin = true},
                                   std::move(callbacks));
  }
  feed();
  EXPECT_LT(written, 10);
  host_.WaitFor([&] { return ended.load(); });
  EXPECT_EQ(out, "7000000\n");
  session.reset();
}

TEST_P(Isolated, ExecWithATerminal) {
  const std::string id = host_.Start({.argv = {"sleep", "1000"}});
  host_.Started(id);
  // The size may come after the start, as it does from a client; until then stty says nothing.
  const std::string script =
      "test -t 0 && until stty size 2>/dev/null | grep .; do sleep 0.01; done && read x && echo "
      "got $x";
  ExecRun run =
      host_.Exec({.container_id = id, .argv = {"sh", "-c", script}, .tty = true, .use_stdin = true},
                 "line\n", {{132, 43}});
  EXPECT_NE(run.out.find("43 132"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("got line"), std::string::npos) << run.out;
  EXPECT_EQ(run.result.value_or(-1), 0);
}

// A terminal has a name where the container has a /dev of its own, and Ctrl-C reaches its programs.
TEST_P(Isolated, TerminalsAreTheContainersOwn) {
  const bool named = GetParam() == Level::kBubblewrap;
  const std::string id = host_.Start({.argv = {"sleep", "1000"}});
  host_.Started(id);
  for (int i = 0; i < 2; ++i) {  // its number is free again
    ExecRun run = host_.Exec({.container_id = id, .argv = {"tty"}, .tty = true}, "");
    if (named) EXPECT_EQ(run.out, "/dev/pts/0\r\n");
    EXPECT_TRUE(run.out.starts_with("/dev/pts/") || run.out == "not a tty\r\n") << run.out;
  }
  ExecRun interrupted = host_.Exec(
      {.container_id = id, .argv = {"sleep", "1000"}, .tty = true, .use_stdin = true}, "\x03");
  EXPECT_EQ(interrupted.result.value_or(-1), 130);
  if (!named) return;
  ExecRun run = host_.Exec({.container_id = id,
                            .argv = {"sh", "-c", "echo by name >$(tty); echo mine >/dev/tty"},
                            .tty = true},
                           "");
  EXPECT_EQ(run.out, "by name\r\nmine\r\n");
  const std::string with = host_.Start({.argv = {"sh", "-c", "tty; exec sleep 1000"}, .tty = true});
  host_.WaitForLog(with, "/dev/pts/0");
}

TEST_P(Isolated, ExecOfNothing) {
  const std::string id = host_.Start({.argv = {"sleep", "1000"}});
  host_.Started(id);
  ExecRun run = host_.Exec({.container_id = id, .argv = {"no-such-program"}});
  ASSERT_FALSE(run.result);
  EXPECT_NE(run.result.error().message.find("no-such-program"), std::string::npos)
      << run.result.error().message;
}

TEST_P(Isolated, ExecTimesOut) {
  const std::string id = host_.Start({.argv = {"sleep", "1000"}});
  host_.Started(id);
  ExecRun run = host_.Exec({.container_id = id, .argv = {"sleep", "1000"}, .timeout = 100ms});
  ASSERT_FALSE(run.result);
  EXPECT_EQ(run.result.error().reason, "Timeout");
}

TEST_P(Isolated, AttachToATerminal) {
  const std::string id = host_.Start(
      {.argv = {"sh", "-c", "read x; echo you said $x"}, .tty = true, .stdin_open = true});
  host_.Started(id);
  ExecRun run = host_.Attach({.container_id = id, .use_stdin = true}, "hello\n");
  EXPECT_NE(run.out.find("you said hello"), std::string::npos) << run.out;
  EXPECT_EQ(run.result.value_or(-1), 0);
}

TEST_P(Isolated, NothingLivesOnAfterTheRuntime) {
  const std::string mark = fmt::format("{}.5", 100000 + getpid());
  const std::string id = host_.Start(
      {.argv = {"sh", "-c", "sleep " + mark + " & sleep " + mark + " & echo ready; wait"}});
  host_.WaitForLog(id, "ready");
  EXPECT_GE(CountProcesses(mark), 2);
  host_.Close();
  host_.WaitFor([&] { return CountProcesses(mark) == 0; });
}

TEST_P(Isolated, NothingLivesOnWhenTheLabIsKilled) {
  const std::string mark = fmt::format("{}.25{}", 200000 + getpid(), static_cast<int>(GetParam()));
  // A lab of its own: this test program again, which starts a container and waits to be killed.
  const pid_t lab = StartLab(GetParam(), mark, host_.directory());
  host_.WaitFor([&] { return CountProcesses(mark) >= 3; });  // it, the shell and its child
  kill(lab, SIGKILL);
  waitpid(lab, nullptr, 0);
  host_.WaitFor([&] { return CountProcesses(mark) == 0; });
}

// The capability Pod: a table of the allocated card, whatever the level.
class Capability : public Isolated {};

INSTANTIATE_TEST_SUITE_P(Levels, Capability,
                         testing::Values(Level::kBubblewrap, Level::kLandlock, Level::kBuiltIn),
                         [](const auto& info) {
                           return info.param == Level::kBuiltIn
                                      ? "builtin"
                                      : std::string(LevelName(info.param));
                         });

TEST_P(Capability, NvidiaSmiShowsTheAllocatedCard) {
  if (SEXTANT_SANITIZED && GetParam() != Level::kBuiltIn)
    GTEST_SKIP() << "nvidia-smi is not static in a sanitizer build";
  const Result<gpu::Inventory> node =
      gpu::BuildInventory({.model = "A100-SXM4-40GB", .count = 8}, "lab", "worker");
  ASSERT_TRUE(node) << node.error().message;
  const std::string uuid = node->cards[3].uuid;
  const auto seen = node->View(std::vector<std::string>{uuid});
  ContainerSpec spec{.argv = {"bash", "-lc", "nvidia-smi -L && nvidia-smi"}};
  // A file of this machine, as the device plugin gives it.
  const std::string file = host_.MakeVolume("inventory") + "/gpus.json";
  std::ofstream(file) << gpu::Serialise(seen.value());
  spec.mounts = {
      {.container_path = gpu::kContainerInventoryPath, .host_path = file, .read_only = true}};
  const std::string log = host_.LogOf(spec);
  EXPECT_NE(log.find(uuid), std::string::npos) << log;
  EXPECT_NE(log.find("| NVIDIA-SMI"), std::string::npos) << log;
  EXPECT_EQ(log.find(node->cards[2].uuid), std::string::npos) << log;
}

// ---- Only with namespaces

class Bubblewrap : public testing::Test {
 protected:
  void SetUp() override {
    if (!host_.Usable(Level::kBubblewrap)) GTEST_SKIP() << host_.why();
  }
  RuntimeHost host_{Level::kBubblewrap};
};

TEST_F(Bubblewrap, TheProgramIsProcessOne) {
  EXPECT_EQ(host_.LogOf({.argv = {"sh", "-c", "echo $$; id -u; hostname; pwd"}}),
            "1\n0\ntest-pod\n/\n");
}

TEST_F(Bubblewrap, UserAndDirectory) {
  EXPECT_EQ(host_.LogOf({.argv = {"sh", "-c", "id -u; id -g; pwd; echo x > f && cat f"},
                         .working_dir = "/tmp/deep/er",
                         .run_as_user = 1000,
                         .run_as_group = 2000}),
            "1000\n2000\n/tmp/deep/er\nx\n");
}

TEST_F(Bubblewrap, Mounts) {
  const std::string data = host_.MakeVolume("data");
  std::ofstream(data + "/file") << "content\n";
  ContainerSpec spec{
      .argv = {"sh", "-c",
               "cat /ro/file; echo x 2>&1 >/ro/new || echo read-only; echo y >/rw/new; "
               "cat /run/sextant/gpus.json; echo; cat /sub; echo t > /mem/t; "
               "ls -l /dev/nvidia0 | cut -c1; cat /etc/hosts | tail -1; df -k /mem | "
               "tail -1 | awk '{print $2}'"}};
  spec.mounts = {
      {.container_path = "/ro", .host_path = data, .read_only = true},
      {.container_path = "/rw", .host_path = data},
      {.container_path = "/sub", .host_path = data, .sub_path = "file", .read_only = true},
      {.kind = Mount::Kind::kFile, .container_path = "/run/sextant/gpus.json", .content = "{}"},
      {.kind = Mount::Kind::kTmpfs, .container_path = "/mem", .size_limit = 1 << 20}};
  spec.devices = {{.container_path = "/dev/nvidia0"}};
  EXPECT_EQ(host_.LogOf(spec),
            "content\nsh: can't create /ro/new: Read-only file system\nread-only\n{}\ncontent\nc\n"
            "10.244.0.5\ttest-pod\n1024\n");
  std::string written;
  std::getline(std::ifstream(data + "/new"), written);
  EXPECT_EQ(written, "y");
}

TEST_F(Bubblewrap, SubPathCannotLeaveItsVolume) {
  const std::string data = host_.MakeVolume("data");
  fs::create_directory_symlink("/etc", data + "/out");
  ContainerSpec spec{.argv = {"ls", "/x"}};
  for (const char* sub_path : {"out", "../..", "out/passwd"}) {
    spec.mounts = {{.container_path = "/x", .host_path = data, .sub_path = sub_path}};
    const ContainerEvent end = host_.RunToEnd(spec);
    EXPECT_EQ(end.reason, "StartError") << sub_path;
    EXPECT_NE(end.message.find("leads out of its volume"), std::string::npos) << end.message;
  }
}

TEST_F(Bubblewrap, BadMountsAreRefused) {
  for (const char* path : {"/", "relative", "/a/../../b", "/proc", "/proc/sys", "/dev"}) {
    ContainerSpec spec{.argv = {"true"}};
    spec.mounts = {{.kind = Mount::Kind::kTmpfs, .container_path = path}};
    EXPECT_EQ(host_.RunToEnd(spec).reason, "StartError") << path;
  }
}

TEST_F(Bubblewrap, StartErrors) {
  struct Case {
    ContainerSpec spec;
    std::string message;
  };
  ContainerSpec missing{.argv = {"true"}};
  missing.mounts = {{.container_path = "/x", .host_path = "/no/such/place"}};
  ContainerSpec nul{.argv = {std::string("echo\0x", 6)}};
  nul.argv = {"echo", std::string("a\0b", 3)};
  ContainerSpec directory{.argv = {"true"}, .working_dir = "/bin/true"};
  for (const Case& c : {Case{missing, "/no/such/place"}, Case{nul, "NUL"},
                        Case{directory, "chdir to cwd (\"/bin/true\")"}}) {
    const ContainerEvent end = host_.RunToEnd(c.spec);
    EXPECT_EQ(end.reason, "StartError");
    EXPECT_EQ(end.exit_code, 128);
    EXPECT_NE(end.message.find(c.message), std::string::npos) << end.message;
  }
}

TEST_F(Bubblewrap, ScriptOfAConfigMapRuns) {
  ContainerSpec spec{.argv = {"/scripts/run.sh"}};
  spec.mounts = {{.kind = Mount::Kind::kFile,
                  .container_path = "/scripts/run.sh",
                  .content = "#!/bin/sh\necho from a script\n",
                  .mode = 0755}};
  EXPECT_EQ(host_.LogOf(spec), "from a script\n");
}

TEST_F(Bubblewrap, NoOtherPodIsSeen) {
  const std::string other =
      host_.Start({.argv = {"sh", "-c", "echo mine > /tmp/mine; echo ready; sleep 1000"}});
  host_.WaitForLog(other, "ready");
  host_.AddSandbox("second", {});
  EXPECT_EQ(host_.LogOf(
                {.sandbox_uid = "second", .argv = {"sh", "-c", "ls /tmp; ps -o pid,args | wc -l"}}),
            "4\n");  // the head, sh, ps and wc
}

TEST_F(Bubblewrap, RootCannotDoRootThings) {
  const std::string log =
      host_.LogOf({.argv = {"sh", "-c",
                            "mount -t tmpfs x /mnt; unshare -r true; mknod /tmp/d b 8 0; "
                            "echo 1 > /proc/sys/kernel/sysrq; cat /proc/kmsg; hostname evil; "
                            "grep CapEff /proc/self/status; grep NoNewPrivs /proc/self/status"}});
  EXPECT_NE(log.find("CapEff:\t0000000000000000"), std::string::npos) << log;
  EXPECT_NE(log.find("NoNewPrivs:\t1"), std::string::npos) << log;
  EXPECT_NE(log.find("mount: "), std::string::npos) << log;
}

TEST_F(Bubblewrap, Probes) {
  const std::string id =
      host_.Start({.argv = {"sh", "-c",
                            "mkdir -p /www && echo fine > /www/ok && httpd -p 80 -h /www && "
                            "echo ready; sleep 1000"}});
  host_.WaitForLog(id, "ready");
  const auto http = [&](const std::string& path, uint16_t port) {
    return host_.Probe(HttpProbe{.container_id = id, .port = port, .path = path, .timeout = 10s});
  };
  EXPECT_TRUE(http("/ok", 80).success);
  EXPECT_EQ(http("/ok", 80).output, "fine\n");
  EXPECT_EQ(http("/missing", 80).output, "HTTP probe failed with statuscode: 404");
  EXPECT_EQ(http("/ok", 81).output,
            "Get \"http://10.244.0.5:81/ok\": dial tcp 10.244.0.5:81: connect: connection refused");
  EXPECT_TRUE(host_.Probe(TcpProbe{.container_id = id, .port = 80, .timeout = 10s}).success);
  EXPECT_EQ(host_.Probe(TcpProbe{.container_id = id, .port = 81, .timeout = 10s}).output,
            "dial tcp 10.244.0.5:81: connect: connection refused");
  EXPECT_TRUE(host_.Probe(ExecProbe{.container_id = id, .argv = {"true"}, .timeout = 10s}).success);
  const ProbeResult failed = host_.Probe(
      ExecProbe{.container_id = id, .argv = {"sh", "-c", "echo sick; exit 1"}, .timeout = 10s});
  EXPECT_FALSE(failed.success);
  EXPECT_EQ(failed.output, "sick\n");
}

// Servers that say the same to everybody: SETTINGS, then an answer to stream 1.
TEST_F(Bubblewrap, GrpcProbes) {
  const std::string settings("\0\0\0\x04\0\0\0\0\0", 9);
  const std::string headers("\0\0\x01\x01\x04\0\0\0\x01\x88", 10);
  const std::string serving("\0\0\x07\0\x01\0\0\0\x01\0\0\0\0\x02\x08\x01", 16);
  std::string sick = serving;
  sick.back() = 2;
  // grpc-status: 12
  const std::string unknown(
      "\0\0\x11\x01\x05\0\0\0\x01\x88\0\x0bgrpc-status\x02"
      "12",
      26);
  const auto serve = [&](uint16_t port, const std::string& bytes) {
    host_.Started(host_.Start(
        {.argv = {"nc", "-ll", "-p", std::to_string(port), "-e", "sh", "-c",
                  "cat /answer; sleep 5"},
         .mounts = {{.kind = Mount::Kind::kFile, .container_path = "/answer", .content = bytes}}}));
  };
  serve(5001, settings + headers + serving);
  serve(5002, settings + headers + sick);
  serve(5003, settings + unknown);
  serve(5004, "HTTP/1.1 400 Bad Request\r\n\r\n");
  const std::string id = host_.Start({.argv = {"sleep", "1000"}});
  host_.Started(id);
  const auto probe = [&](uint16_t port, Duration timeout) {
    return host_.Probe(GrpcProbe{.container_id = id, .port = port, .timeout = timeout});
  };
  host_.WaitFor([&] { return probe(5001, 10s).success; });
  EXPECT_EQ(probe(5002, 10s).output, "service unhealthy (responded with \"NOT_SERVING\")");
  EXPECT_EQ(probe(5003, 10s).output,
            "error: this server does not implement the grpc health protocol "
            "(grpc.health.v1.Health): ");
  for (const uint16_t port : {uint16_t{5004}, uint16_t{5005}}) {
    EXPECT_EQ(probe(port, 100ms).output,
              fmt::format("timeout: failed to connect service \"10.244.0.5:{}\" within 100ms: "
                          "context deadline exceeded",
                          port));
  }
}

TEST_F(Bubblewrap, ContainersOfAPodShareItsNetwork) {
  const std::string id =
      host_.Start({.argv = {"nc", "-l", "-p", "7000", "-e", "echo", "hi there"}});
  host_.Started(id);
  EXPECT_EQ(host_.LogOf(
                {.argv = {"sh", "-c", "until nc 127.0.0.1 7000 2>/dev/null; do sleep 0.05; done"}}),
            "hi there\n");
}

TEST_F(Bubblewrap, AContainerBesideAnotherSeesItsProcesses) {
  const std::string id = host_.Start({.argv = {"sleep", "12345"}});
  host_.Started(id);
  EXPECT_EQ(host_.LogOf({.argv = {"sh", "-c", "tr '\\0' ' ' </proc/1/cmdline"}, .target = id}),
            "sleep 12345 \n");
  // Its end is not the other's.
  EXPECT_EQ(host_.RunToEnd({.argv = {"sh", "-c", "exit 7"}, .target = id}).exit_code, 7);
  const std::string shell = host_.Start({.argv = {"sleep", "1000"}, .target = id});
  host_.Started(shell);
  EXPECT_EQ(host_.Exec({.container_id = shell, .argv = {"sh", "-c", "cat /proc/1/comm"}}).out,
            "sleep\n");
  host_.runtime().StopContainer(shell, SIGKILL, 0s);
  EXPECT_EQ(host_.Ended(shell).exit_code, 137);
  EXPECT_EQ(host_.Exec({.container_id = id, .argv = {"echo", "lives"}}).out, "lives\n");
  // Without processes to see there is no start.
  EXPECT_EQ(host_.RunToEnd({.argv = {"true"}, .target = shell}).reason, "StartError");
  // Beside a simulated one there is only what stands in for it.
  const std::string simulated = host_.Start({.image = "nginx", .argv = {}});
  host_.Started(simulated);
  EXPECT_EQ(host_.RunToEnd({.argv = {"true"}, .target = simulated}).exit_code, 0);
}

TEST_F(Bubblewrap, PortForwardReachesThePod) {
  const std::string id = host_.Start({.argv = {"nc", "-ll", "-p", "7001", "-e", "cat"}});
  host_.Started(id);
  std::string got;
  host_.WaitFor([&] {
    const Result<int> fd = host_.Dial("pod", 7001);
    if (!fd) return false;
    Fd owned(*fd);
    EXPECT_EQ(send(owned.get(), "ping\n", 5, MSG_NOSIGNAL), 5);
    shutdown(owned.get(), SHUT_WR);
    char buffer[64];
    for (int i = 0; i < 1000 && got.find('\n') == std::string::npos; ++i) {
      const ssize_t n = recv(owned.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (n == 0) break;
      if (n > 0)
        got.append(buffer, static_cast<size_t>(n));
      else
        usleep(5000);
    }
    return true;
  });
  EXPECT_EQ(got, "ping\n");
  const Result<int> silent = host_.Dial("pod", 7002);
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().message,
            "failed to connect to localhost:7002 inside namespace \"pod\", IPv4: dial tcp4 "
            "127.0.0.1:7002: connect: connection refused IPv6 dial tcp6 [::1]:7002: connect: "
            "connection refused ");
  EXPECT_FALSE(host_.Dial("unknown", 7001));
}

TEST_F(Bubblewrap, ExecEntersASimulatedContainer) {
  const std::string id = host_.Start({.name = "web", .image = "nginx", .argv = {}});
  EXPECT_TRUE(host_.Started(id).simulated);
  EXPECT_EQ(host_.Exec({.container_id = id, .argv = {"echo", "inside"}}).out, "inside\n");
  EXPECT_TRUE(host_.Probe(HttpProbe{.container_id = id, .port = 80}).success);
  const Result<int> port = host_.Dial("pod", 80);
  ASSERT_FALSE(port);
  EXPECT_EQ(port.error().message,
            "failed to connect to localhost:80 inside namespace \"pod\", IPv4: dial tcp4 "
            "127.0.0.1:80: connect: connection refused IPv6 dial tcp6 [::1]:80: connect: "
            "connection refused (nothing really runs in the container web: it is simulated)");
  host_.runtime().StopContainer(id, SIGKILL, 0s);
  EXPECT_EQ(host_.Ended(id).exit_code, 137);
}

TEST_F(Bubblewrap, SlowReaderHoldsUpOnlyItsProgram) {
  const std::string id = host_.Start({.argv = {"sleep", "1000"}});
  host_.Started(id);
  // Nothing is confirmed: far less than everything comes, and what came is bounded.
  std::atomic<size_t> got = 0;
  auto session =
      host_.runtime().Exec({.container_id = id, .argv = {"head", "-c", "50000000", "/dev/zero"}},
                           {.on_stdout = [&](std::string_view data) { got += data.size(); }});
  host_.WaitFor([&] { return got > kSessionWindow; });
  EXPECT_EQ(host_.Exec({.container_id = id, .argv = {"echo", "meanwhile"}}).out, "meanwhile\n");
  EXPECT_LT(got, 3 * kSessionWindow);
  session.reset();
}

TEST_F(Bubblewrap, RemoveSandboxEndsItsContainers) {
  const std::string id = host_.Start({.argv = {"sleep", "1000"}});
  host_.Started(id);
  host_.RemoveSandbox("pod");
  EXPECT_EQ(host_.Ended(id).exit_code, 137);
  EXPECT_EQ(host_.RunToEnd({.argv = {"true"}}).reason, "StartError");
}

TEST_F(Bubblewrap, StatsCountTheProcesses) {
  const std::string id = host_.Start({.argv = {"sh", "-c", "sleep 1000 & echo ready; wait"}});
  host_.WaitForLog(id, "ready");
  const Result<ContainerStats> stats = host_.Stats(id);
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->pids, 2u);
  EXPECT_GT(stats->memory_bytes, 0u);
}

// ---- What the tests above start as another process

TEST(Lab, DISABLED_Run) { RunLab(); }

// ---- Without any isolation

TEST(BuiltIn, TheToolboxsOwnProgramsAnswer) {
  RuntimeHost host(Level::kBuiltIn);
  ASSERT_TRUE(host.Usable(Level::kBuiltIn));
  EXPECT_EQ(
      host.LogOf({.argv = {"sh", "-c", "echo hi $NAME; sleep 0.01 && false || echo 'so; be it'"},
                  .env = {"NAME=you"}}),
      "hi you\nso; be it\n");
  EXPECT_EQ(host.RunToEnd({.argv = {"sh", "-c", "exit 9"}}).exit_code, 9);
  const std::string loop = host.Start({.argv = {"sh", "-c", "while true; do date; done"}});
  EXPECT_TRUE(host.Started(loop).simulated);
  const std::string id = host.Start({.argv = {"sleep", "infinity"}});
  host.Started(id);
  EXPECT_EQ(host.Exec({.container_id = id, .argv = {"echo", "x"}}).out, "x\n");
  host.runtime().StopContainer(id, SIGTERM, 1s);
  EXPECT_EQ(host.Ended(id).exit_code, 143);
}

TEST(Missing, ThePackageIsNamed) {
  RuntimeHost host(std::nullopt, [](ProcessRuntimeOptions& options) {
    options.toolbox.busybox = "/no/such/busybox";
  });
  EXPECT_EQ(host.runtime().Level(), "built-in");
  EXPECT_NE(host.runtime().Explanation().find("install the package busybox-static"),
            std::string::npos)
      << host.runtime().Explanation();
}

TEST(Missing, AForcedLevelThatDoesNotWorkFailsAloud) {
  RuntimeHost host(Level::kBubblewrap, [](ProcessRuntimeOptions& options) {
    options.toolbox.bwrap = "/no/such/bwrap";
  });
  EXPECT_NE(host.runtime().Explanation().find("install the package bubblewrap"), std::string::npos);
  EXPECT_EQ(host.RunToEnd({.argv = {"true"}}).reason, "StartError");
}

// All of the above once more as another user.
TEST(AsNobody, TheSameTests) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become nobody";
  if (getenv("SEXTANT_TEST_AS_NOBODY")) GTEST_SKIP() << "this is the run as nobody";
  EXPECT_EQ(RunAsNobody(), 0);
}

}  // namespace
}  // namespace sextant::kubelet
