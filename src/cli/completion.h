// Completion scripts for shells: they ask the program's own help for its words.
#pragma once

#include <string>

namespace sextant::cli {

int Completion(const std::string& program, const std::string& shell);  // bash, zsh, fish

}  // namespace sextant::cli
