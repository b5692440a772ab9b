#include "kubelet/builtin_script.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/ascii.h"
#include "kubelet/toolbox.h"

namespace sextant::kubelet {
namespace {

constexpr std::string_view kSpecial = "|&;<>()`\n*?[]{}~#!\\";  // unquoted, outside of ${NAME}
constexpr std::array<std::string_view, 14> kKeywords = {"if",   "then",  "else",     "elif", "fi",
                                                        "for",  "while", "until",    "do",   "done",
                                                        "case", "esac",  "function", "trap"};
constexpr std::array<std::string_view, 12> kOwn = {"echo",     "sleep",    "true", "false",
                                                   ":",        "cat",      "exit", "env",
                                                   "printenv", "hostname", "pwd",  "set"};
constexpr int kNotFound = 127;

std::string_view BaseName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

bool IsShell(std::string_view name) { return name == "sh" || name == "bash" || name == "ash"; }

bool IsNameCharacter(char c) { return c == '_' || IsAlphanumeric(c); }

// busybox sleep: "1", "1.5", "10s", "2m", "1h", "1d", "infinity".
std::optional<Duration> SleepTime(std::string_view text) {
  if (text == "infinity" || text == "inf") return Duration::max();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0 || number > 1e9) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  const double factor = unit.empty() || unit == "s" ? 1
                        : unit == "m"               ? 60
                        : unit == "h"               ? 3600
                        : unit == "d"               ? 86400
                                                    : -1;
  if (factor < 0 || number * factor > 9e9) return std::nullopt;
  return Duration(static_cast<int64_t>(number * factor * 1e9));
}

}  // namespace

std::optional<BuiltinScript> BuiltinScript::Parse(const std::vector<std::string>& argv,
                                                  std::vector<std::string> env,
                                                  std::map<std::string, std::string> files,
                                                  const BuiltinPrograms& programs) {
  BuiltinScript script(std::move(env), std::move(files), programs);
  if (!script.AddArgv(argv, Command::When::kAlways, 0)) return std::nullopt;
  return script;
}

bool BuiltinScript::AddArgv(const std::vector<std::string>& argv, Command::When when, int depth) {
  if (argv.empty() || depth > kBuiltinDepthMax) return false;
  if (IsShell(BaseName(argv[0]))) {
    // Options, the last of them with a "c", then the script.
    size_t i = 1;
    bool script = false;
    for (; i < argv.size() && !script && argv[i].starts_with('-'); ++i) {
      if (argv[i].find_first_not_of("-lceux") != std::string::npos) return false;
      script = argv[i].find('c') != std::string::npos;
    }
    return script && i < argv.size() && AddText(argv[i], when, depth + 1);
  }
  Command command{.when = when};
  for (const std::string& word : argv) command.words.push_back({Piece{word, false}});
  if (!Known(command)) return false;
  commands_.push_back(std::move(command));
  return true;
}

bool BuiltinScript::AddText(std::string_view text, Command::When first, int depth) {
  if (text.size() > kBuiltinScriptMax) return false;
  Command command{.when = first};
  Word word;
  bool in_word = false;
  const auto end_word = [&] {
    if (in_word) command.words.push_back(std::exchange(word, {}));
    in_word = false;
  };
  const auto end_command = [&](Command::When next) {
    end_word();
    return AddCommand(std::exchange(command, Command{.when = next}), depth);
  };
  const auto add = [&](char c) {
    in_word = true;
    if (word.empty() || word.back().variable) word.push_back({});
    word.back().text.push_back(c);
  };
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == '\'') {
      if (c == quote)
        quote = 0;
      else
        add(c);
    } else if (c == '$') {
      const bool braces = i + 1 < text.size() && text[i + 1] == '{';
      size_t at = i + (braces ? 2 : 1), end = at;
      while (end < text.size() && IsNameCharacter(text[end])) ++end;
      if (end == at || (braces && (end >= text.size() || text[end] != '}'))) return false;
      word.push_back({std::string(text.substr(at, end - at)), true});
      in_word = true;
      i = braces ? end : end - 1;
    } else if (quote == '"') {
      if (c == '`' || c == '\\') return false;
      if (c == quote)
        quote = 0;
      else
        add(c);
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
      if (word.empty()) word.push_back({});
    } else if (c == ' ' || c == '\t') {
      end_word();
    } else if (c == '\n' || c == ';') {
      if (!end_command(Command::When::kAlways)) return false;
    } else if ((c == '&' || c == '|') && i + 1 < text.size() && text[i + 1] == c) {
      if (!end_command(c == '&' ? Command::When::kIfSuccess : Command::When::kIfFailure))
        return false;
      ++i;
    } else if (kSpecial.find(c) != kSpecial.npos) {
      return false;
    } else {
      add(c);
    }
  }
  return quote == 0 && end_command(Command::When::kAlways);
}

bool BuiltinScript::AddCommand(Command command, int depth) {
  if (command.words.empty()) return true;
  const bool literal = std::ranges::all_of(command.words, [](const Word& word) {
    return std::ranges::none_of(word, [](const Piece& piece) { return piece.variable; });
  });
  std::vector<std::string> argv;
  for (const Word& word : command.words) argv.push_back(Expand(word));
  if (argv[0] == "exec") argv.erase(argv.begin());
  if (!argv.empty() && IsShell(BaseName(argv[0])))
    return literal && AddArgv(argv, command.when, depth);
  if (!Known(command)) return false;
  commands_.push_back(std::move(command));
  return true;
}

bool BuiltinScript::Known(const Command& command) const {
  const Word& first = command.words[0];
  if (std::ranges::any_of(first, [](const Piece& piece) { return piece.variable; })) return false;
  std::string name = Expand(first);
  if (name == "exec") {
    if (command.words.size() < 2) return false;
    name = Expand(command.words[1]);
  }
  if (std::ranges::find(kKeywords, name) != kKeywords.end()) return false;
  if (name.find('=') != std::string::npos) return false;  // an assignment
  const std::string_view base = BaseName(name);
  return std::ranges::find(kOwn, base) != kOwn.end() || programs_->contains(base);
}

std::string BuiltinScript::Expand(const Word& word) const {
  std::string out;
  for (const Piece& piece : word)
    out += piece.variable ? std::string(EnvValue(env_, piece.text, "")) : piece.text;
  return out;
}

BuiltinScript::Step BuiltinScript::Run() {
  Step step;
  while (next_ < commands_.size()) {
    const Command& command = commands_[next_++];
    if (command.when == Command::When::kIfSuccess && status_ != 0) continue;
    if (command.when == Command::When::kIfFailure && status_ == 0) continue;
    std::vector<std::string> argv;
    for (const Word& word : command.words) argv.push_back(Expand(word));
    const bool exec = argv[0] == "exec";
    if (exec) argv.erase(argv.begin());
    if (exec) next_ = commands_.size();
    Execute(std::move(argv), step);
    if (step.ended || step.sleep > Duration{0}) return step;
  }
  step.ended = true;
  step.exit_code = status_;
  return step;
}

void BuiltinScript::Execute(std::vector<std::string> argv, Step& step) {
  const std::string name(BaseName(argv[0]));
  status_ = 0;
  if (const auto program = programs_->find(name); program != programs_->end()) {
    status_ = program->second(BuiltinCall{std::move(argv), env_, files_}, step.out, step.err);
  } else if (name == "echo") {
    const bool newline = argv.size() < 2 || argv[1] != "-n";
    const size_t from = newline ? 1 : 2;
    for (size_t i = from; i < argv.size(); ++i) step.out += (i > from ? " " : "") + argv[i];
    if (newline) step.out += "\n";
  } else if (name == "sleep") {
    Duration total{0};
    for (size_t i = 1; i < argv.size(); ++i) {
      const std::optional<Duration> time = SleepTime(argv[i]);
      if (!time) {
        step.err += fmt::format("sleep: invalid number '{}'\n", argv[i]);
        status_ = 1;
        return;
      }
      total =
          *time == Duration::max() || total == Duration::max() ? Duration::max() : total + *time;
    }
    step.sleep = total;
  } else if (name == "false") {
    status_ = 1;
  } else if (name == "exit") {
    int code = 0;
    if (argv.size() > 1) std::from_chars(argv[1].data(), argv[1].data() + argv[1].size(), code);
    step.ended = true;
    step.exit_code = code & 255;
  } else if (name == "cat") {
    for (size_t i = 1; i < argv.size(); ++i) {
      const auto file = files_.find(CleanPath(argv[i]));
      if (file != files_.end()) {
        step.out += file->second;
      } else {
        step.err += fmt::format("cat: can't open '{}': No such file or directory\n", argv[i]);
        status_ = 1;
      }
    }
  } else if (name == "env" || name == "printenv") {
    for (const std::string& entry : env_)
      if (argv.size() == 1) step.out += entry + "\n";
    for (size_t i = 1; i < argv.size(); ++i)
      step.out += std::string(EnvValue(env_, argv[i], "")) + "\n";
  } else if (name == "hostname") {
    step.out += std::string(EnvValue(env_, "HOSTNAME", "localhost")) + "\n";
  } else if (name == "pwd") {
    step.out += "/\n";
  } else if (name != "true" && name != ":" && name != "set") {
    step.err += fmt::format("sh: {}: not found\n", name);
    status_ = kNotFound;
  }
}

}  // namespace sextant::kubelet
