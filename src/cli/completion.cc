#include "cli/completion.h"

#include <cstdio>

namespace sextant::cli {
namespace {

// The words of a help text: subcommands (two blanks, a word) and long options.
constexpr char kBash[] = R"(_sextant() {
  local cur=${COMP_WORDS[COMP_CWORD]} words=() i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in -*) ;; *) words+=("${COMP_WORDS[i]}") ;; esac
  done
  COMPREPLY=($(compgen -W "$(${COMP_WORDS[0]} "${words[@]}" --help 2>/dev/null |
    grep -oE '^  [a-z][a-z-]+|--[a-z][a-z-]+')" -- "$cur"))
}
complete -o default -F _sextant sextant
)";
constexpr char kZsh[] = R"(#compdef sextant
autoload -U +X bashcompinit && bashcompinit
)";
constexpr char kFish[] = R"(function __sextant_words
  set -l words (commandline -opc | string match -rv '^-')
  $words --help 2>/dev/null | string match -rga '^  ([a-z][a-z-]+)|(--[a-z][a-z-]+)'
end
complete -c sextant -a '(__sextant_words)'
)";

}  // namespace

int Completion(const std::string& shell) {
  if (shell == "fish") {
    std::fputs(kFish, stdout);
    return 0;
  }
  if (shell == "zsh") std::fputs(kZsh, stdout);
  std::fputs(kBash, stdout);
  return 0;
}

}  // namespace sextant::cli
