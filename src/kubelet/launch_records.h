// The records that sextant-init reads (init/launch_spec.h), from a container's spec.
// Threads: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kubelet/isolation.h"

namespace sextant::kubelet {

class Records {
 public:
  void Add(std::string_view key, std::string_view value) {
    text_.append(key).append("=").append(value).push_back('\0');
  }
  void Add(std::string_view key, uint64_t value) { Add(key, std::to_string(value)); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// What all levels say of a program. `path` is the default PATH.
Records CommonRecords(const ContainerInput& input, const std::vector<std::string>& argv,
                      std::string_view path);
// Refuses what cannot be said in records, and too much of it.
Status CheckSpec(const ContainerSpec& spec);
Status CheckWords(const std::vector<std::string>& words, std::string_view what);
void AddTerminal(const Stdio& stdio, Records& records);
// Records and standard streams for the child.
Status GiveRecords(const Records& records, Stdio stdio, SpawnRequest& request);
// The real path of a host mount. A sub path may not lead out of its volume.
Result<std::string> MountSource(const Mount& mount);
// The environment of sextant-init itself.
std::vector<std::string> InitEnvironment();
uint64_t DataLimit(const ContainerSpec& spec);
uint32_t PidLimit(const ContainerSpec& spec);

}  // namespace sextant::kubelet
