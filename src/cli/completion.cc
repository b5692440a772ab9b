#include "cli/completion.h"

#include <cstdio>

namespace sextant::cli {
namespace {

// PROGRAM stands for the program's name. The words are those of a help text: subcommands (two
// blanks, a word), options, and the values in braces of an option ({text,json}).
constexpr char kBash[] = R"sh(_PROGRAM() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=() i help
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in -*) ;; *) words+=("${COMP_WORDS[i]}") ;; esac
  done
  case $prev in
    --name | -n) COMPREPLY=($(compgen -W "$(PROGRAM get clusters 2>/dev/null)" -- "$cur")); return ;;
    --node) COMPREPLY=($(compgen -W "$(PROGRAM get nodes -A 2>/dev/null)" -- "$cur")); return ;;
    --config | --kubeconfig | --evidence) return ;;
  esac
  for ((i = ${#words[@]}; i >= 0; i--)); do
    help=$(PROGRAM help "${words[@]:0:i}" 2>/dev/null) && break
  done
  case $prev in
    -*) i=$(grep -E -- "(^|[ ,])$prev[ ,]" <<<"$help" | grep -oE '[{][a-z,]+[}]' | tr '{},' '   ')
      if [ -n "$i" ]; then COMPREPLY=($(compgen -W "$i" -- "$cur")); return; fi ;;
  esac
  COMPREPLY=($(compgen -W "$(grep -oE '^  [a-z][a-z-]+|--[a-z][a-z-]+' <<<"$help")" -- "$cur"))
}
complete -o default -F _PROGRAM PROGRAM
)sh";
constexpr char kZsh[] = R"sh(#compdef PROGRAM
autoload -U +X compinit && compinit
autoload -U +X bashcompinit && bashcompinit
)sh";
constexpr char kFish[] = R"sh(function __PROGRAM_words
  set -l words (commandline -opc | string match -rv '^-')
  PROGRAM help $words[2..-1] 2>/dev/null | string match -rga '^  ([a-z][a-z-]+)|(--[a-z][a-z-]+)'
end
complete -c PROGRAM -a '(__PROGRAM_words)'
complete -c PROGRAM -l name -x -a '(PROGRAM get clusters 2>/dev/null)'
complete -c PROGRAM -l node -x -a '(PROGRAM get nodes -A 2>/dev/null)'
)sh";

void Print(std::string text, const std::string& program) {
  constexpr std::string_view kStandIn = "PROGRAM";
  for (size_t at = text.find(kStandIn); at != std::string::npos; at = text.find(kStandIn, at)) {
    text.replace(at, kStandIn.size(), program);
    at += program.size();
  }
  std::fputs(text.c_str(), stdout);
}

}  // namespace

int Completion(const std::string& program, const std::string& shell) {
  if (shell == "fish") {
    Print(kFish, program);
    return 0;
  }
  if (shell == "zsh") Print(kZsh, program);
  Print(kBash, program);
  return 0;
}

}  // namespace sextant::cli
