// Runs a few programs without any process, where this machine allows no isolation at all: echo,
// sleep, cat, little scripts of simple commands, and programs that the lab gives (nvidia-smi).
//
//   auto script = BuiltinScript::Parse({"sh", "-c", "echo hello; sleep 1"}, env, files, programs);
//   if (!script) ...                 // needs more shell than there is: simulated
//   while (true) {
//     BuiltinScript::Step step = script->Run();   // writes to step.out, step.err
//     if (step.ended) return step.exit_code;      // else: wait step.sleep, then Run again
//   }
//
// Commands joined by ";", "&&", "||" and line ends; quotes; $NAME and ${NAME}; "exec CMD". Anything
// else (pipes, redirections, substitutions, globs, loops, functions) does not parse.
// Threads: one owner.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace sextant::kubelet {

struct BuiltinCall {
  std::vector<std::string> argv;
  const std::vector<std::string>& env;              // "NAME=value"
  const std::map<std::string, std::string>& files;  // placed files by path in the container
};
using BuiltinProgram = std::function<int(const BuiltinCall&, std::string& out, std::string& err)>;
using BuiltinPrograms = std::map<std::string, BuiltinProgram, std::less<>>;

inline constexpr size_t kBuiltinScriptMax = 64 * 1024;
inline constexpr int kBuiltinDepthMax = 8;  // sh -c in sh -c

class BuiltinScript {
 public:
  // nullopt: not for us.
  static std::optional<BuiltinScript> Parse(const std::vector<std::string>& argv,
                                            std::vector<std::string> env,
                                            std::map<std::string, std::string> files,
                                            const BuiltinPrograms& programs);

  struct Step {
    bool ended = false;
    int exit_code = 0;
    Duration sleep{0};  // forever: Duration::max()
    std::string out, err;
  };
  Step Run();

 private:
  struct Piece {
    std::string text;
    bool variable = false;
  };
  using Word = std::vector<Piece>;
  struct Command {
    enum class When { kAlways, kIfSuccess, kIfFailure };
    When when = When::kAlways;
    std::vector<Word> words;
  };

  BuiltinScript(std::vector<std::string> env, std::map<std::string, std::string> files,
                const BuiltinPrograms& programs)
      : env_(std::move(env)), files_(std::move(files)), programs_(&programs) {}
  bool AddArgv(const std::vector<std::string>& argv, Command::When when, int depth);
  bool AddText(std::string_view text, Command::When first, int depth);
  bool AddCommand(Command command, int depth);
  bool Known(const Command& command) const;
  std::string Expand(const Word& word) const;
  void Execute(std::vector<std::string> argv, Step& step);

  std::vector<std::string> env_;
  std::map<std::string, std::string> files_;
  const BuiltinPrograms* programs_;
  std::vector<Command> commands_;
  size_t next_ = 0;
  int status_ = 0;
};

}  // namespace sextant::kubelet
