#include "kubelet/process_stats.h"

#include <unistd.h>

#include <charconv>
#include <vector>

#include "base/file.h"

namespace sextant::kubelet {
namespace {

constexpr size_t kProcFileMax = 64 * 1024;
constexpr size_t kMaxProcesses = 4096;

std::vector<int64_t> Numbers(std::string_view text) {
  std::vector<int64_t> out;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int64_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error == std::errc{}) {
      out.push_back(value);
      at = next;
    } else {
      ++at;
    }
  }
  return out;
}

// proc_pid_stat(5), numbered from the field after the command's name: 11 utime, 12 stime,
// 13 cutime, 14 cstime, 17 threads, 21 resident pages.
void AddProcess(pid_t pid, ContainerStats& stats) {
  const Result<std::string> text = ReadFile(fmt::format("/proc/{}/stat", pid), kProcFileMax);
  if (!text) return;
  const size_t name_end = text->rfind(')');
  if (name_end == std::string::npos || name_end + 3 >= text->size()) return;
  // The state is a letter; after it numbers only.
  const std::vector<int64_t> fields = Numbers(std::string_view(*text).substr(name_end + 3));
  if (fields.size() < 21) return;
  const int64_t ticks = fields[10] + fields[11] + fields[12] + fields[13];
  stats.cpu += Duration(ticks * (1'000'000'000 / sysconf(_SC_CLK_TCK)));
  stats.pids += static_cast<uint32_t>(fields[16]);
  stats.memory_bytes +=
      static_cast<uint64_t>(fields[20]) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

ContainerStats ReadStats(pid_t root) {
  ContainerStats stats;
  std::vector<pid_t> all = {root};
  for (size_t i = 0; i < all.size() && all.size() < kMaxProcesses; ++i) {
    AddProcess(all[i], stats);
    const Result<std::string> children =
        ReadFile(fmt::format("/proc/{}/task/{}/children", all[i], all[i]), kProcFileMax);
    if (!children) continue;
    for (int64_t child : Numbers(*children)) all.push_back(static_cast<pid_t>(child));
  }
  return stats;
}

}  // namespace sextant::kubelet
