// The root directory that process containers share: busybox as sh, ls, cat and so on, bash, our
// nvidia-smi. Built once per directory from the programs of this machine; beside it lies
// sextant-init (kubelet/init/init.h).
//
//   ASSIGN_OR_RETURN(Toolbox toolbox, Toolbox::Build({.directory = state + "/runtime"}));
//   toolbox.Resolve(spec);   // real, or simulated and why
//
// Threads: Build blocks (some milliseconds); a built toolbox is read-only and may be used anywhere.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "kubelet/runtime.h"

namespace sextant::kubelet {

struct ToolboxOptions {
  std::string directory;  // made if missing
  std::string busybox;    // paths; empty: looked for where distributions put them
  std::string bash;
  std::string nvidia_smi;  // empty: the one that this program carries
  std::string bwrap;
};

inline constexpr std::string_view kDefaultPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

class Toolbox {
 public:
  // Fails with the name of the package that is missing.
  static Result<Toolbox> Build(const ToolboxOptions& options);

  const std::string& bin() const { return bin_; }      // the directory of the programs
  const std::string& init() const { return init_; }    // path of sextant-init
  const std::string& bwrap() const { return bwrap_; }  // empty: not installed
  bool Has(std::string_view program) const { return programs_.contains(program); }

  struct Program {
    bool runs = false;
    std::string why;   // not runs: a sentence for the event
    std::string path;  // runs: in the container
  };
  // What a container's argv[0] means, by its PATH, the toolbox and what the container mounts.
  Program Resolve(const ContainerSpec& spec) const;

 private:
  std::string bin_, init_, bwrap_;
  std::set<std::string, std::less<>> programs_;
};

// "/a//b/./c" → "/a/b/c". Empty if it is not absolute or contains "..".
std::string CleanPath(std::string_view path);
// The value of NAME in "NAME=value" entries; the last one counts, as for a real environment.
std::string_view EnvValue(const std::vector<std::string>& env, std::string_view name,
                          std::string_view fallback);

}  // namespace sextant::kubelet
