#include "kubelet/builtin_script.h"

#include <gtest/gtest.h>

namespace sextant::kubelet {
namespace {

using namespace std::chrono_literals;

const BuiltinPrograms& Programs() {
  static const auto* programs = new BuiltinPrograms{
      {"nvidia-smi", [](const BuiltinCall& call, std::string& out, std::string&) {
         out += fmt::format("{} words, {} files\n", call.argv.size(), call.files.size());
         return 0;
       }}};
  return *programs;
}

struct Outcome {
  std::string out;
  int code = -1;
  Duration slept{0};
};

std::optional<Outcome> RunScript(const std::vector<std::string>& argv) {
  auto script =
      BuiltinScript::Parse(argv, {"NAME=you", "EMPTY="}, {{"/etc/x", "content\n"}}, Programs());
  if (!script) return std::nullopt;
  Outcome outcome;
  for (;;) {
    const BuiltinScript::Step step = script->Run();
    outcome.out += step.out + step.err;
    outcome.code = step.exit_code;
    if (step.ended) return outcome;
    outcome.slept += step.sleep;
  }
}

TEST(BuiltinScript, RunsSimpleCommands) {
  struct Case {
    std::vector<std::string> argv;
    std::string out;
    int code = 0;
    Duration slept{0};
  };
  for (const Case& c : {
           Case{{"echo", "a", "b"}, "a b\n"},
           Case{{"/bin/echo", "-n", "a"}, "a"},
           Case{{"true"}, ""},
           Case{{"false"}, "", 1},
           Case{{"sleep", "2", "1m"}, "", 0, 62s},
           Case{{"sleep", "x"}, "sleep: invalid number 'x'\n", 1},
           Case{{"nvidia-smi", "-L"}, "2 words, 1 files\n"},
           Case{{"bash", "-lc", "nvidia-smi"}, "1 words, 1 files\n"},
           Case{{"sh", "-c", "echo $NAME \"${NAME}!\" '$NAME'"}, "you you! $NAME\n"},
           Case{{"sh", "-c", "false && echo no || echo yes; exit 4; echo never"}, "yes\n", 4},
           Case{{"sh", "-c", "exec sleep 0.5"}, "", 0, 500ms},
           Case{{"sh", "-c", "bash -c 'echo inner'\necho outer"}, "inner\nouter\n"},
           Case{{"cat", "/etc/x", "/none"},
                "content\ncat: can't open '/none': No such file or directory\n",
                1},
           Case{{"printenv", "NAME"}, "you\n"},
           Case{{"sh", "-c", ""}, ""},
       }) {
    const std::optional<Outcome> outcome = RunScript(c.argv);
    ASSERT_TRUE(outcome) << c.argv.back();
    EXPECT_EQ(outcome->out, c.out);
    EXPECT_EQ(outcome->code, c.code) << c.argv.back();
    EXPECT_EQ(outcome->slept, c.slept);
  }
}

TEST(BuiltinScript, LeavesTheRestAlone) {
  for (const std::vector<std::string>& argv : std::vector<std::vector<std::string>>{
           {},
           {"python3"},
           {"sh"},
           {"sh", "script.sh"},
           {"sh", "-c", "echo a | cat"},
           {"sh", "-c", "echo a > /tmp/x"},
           {"sh", "-c", "echo $(date)"},
           {"sh", "-c", "echo `date`"},
           {"sh", "-c", "while true; do echo x; done"},
           {"sh", "-c", "x=1"},
           {"sh", "-c", "echo 'open"},
           {"sh", "-c", "echo $"},
           {"sh", "-c", "echo ${NAME:-x}"},
           {"sh", "-c", "echo *"},
           {"sh", "-c", "sleep 1 &"},
           {"sh", "-c", "sh -c \"$NAME\""},
       })
    EXPECT_FALSE(RunScript(argv)) << (argv.empty() ? "" : argv.back());
}

TEST(BuiltinScript, NestingIsBounded) {
  std::vector<std::string> argv = {"sh", "-c", std::string(kBuiltinScriptMax + 1, ' ')};
  EXPECT_FALSE(RunScript(argv));
}

}  // namespace
}  // namespace sextant::kubelet
