#include "kubelet/pod_storage.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>

#include "api/amounts.h"

namespace sextant::kubelet {
namespace {

namespace fs = std::filesystem;
using api::Quantity;
using api::Value;

constexpr int64_t kBlock = 512;  // of st_blocks

// Symbolic links count as themselves: what they point to is somebody else's.
int64_t BytesBelow(const fs::path& directory) {
  int64_t bytes = 0;
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator at(directory, options, error), end; !error && at != end;
       at.increment(error)) {
    struct stat status{};
    if (lstat(at->path().c_str(), &status) == 0) bytes += status.st_blocks * kBlock;
  }
  return bytes;
}

bool IsOnDisk(Value volume) {
  return volume["emptyDir"] && volume["emptyDir"]["medium"].AsString() != "Memory";
}

std::optional<Quantity> Read(Value amount) {
  if (!amount) return {};
  return Quantity::ParseOrZero(amount.AsString());
}

// The sum over the containers that have a limit; nothing if none has.
std::optional<Quantity> LimitOf(const api::Object& pod) {
  const api::Amounts limits = api::PodAmounts(pod.root(), "limits");
  const auto found = limits.find("ephemeral-storage");
  if (found == limits.end()) return {};
  return found->second;
}

Quantity Bytes(int64_t bytes) { return Quantity(bytes, Quantity::Format::kBinarySi); }

}  // namespace

int64_t PodStorage::Total() const {
  int64_t total = logs;
  for (const auto& [name, bytes] : volumes) total += bytes;
  return total;
}

PodStorage MeasureStorage(const std::string& pod_directory) {
  PodStorage used;
  std::error_code error;
  for (fs::directory_iterator at(pod_directory + "/volumes", error), end; !error && at != end;
       at.increment(error)) {
    used.volumes[at->path().filename()] = BytesBelow(at->path());
  }
  used.logs = BytesBelow(pod_directory + "/logs");
  return used;
}

bool KeepsOnDisk(const api::Object& pod) {
  for (Value volume : pod["spec"]["volumes"].items())
    if (IsOnDisk(volume)) return true;
  return LimitOf(pod).has_value();
}

std::string StorageExcess(const api::Object& pod, const PodStorage& used) {
  for (Value volume : pod["spec"]["volumes"].items()) {
    const auto limit = Read(volume["emptyDir"]["sizeLimit"]);
    const auto found = used.volumes.find(std::string(volume["name"].AsString()));
    if (!limit || limit->Value() <= 0 || found == used.volumes.end()) continue;
    if (IsOnDisk(volume) && found->second > limit->Value()) {
      return fmt::format("Usage of EmptyDir volume \"{}\" exceeds the limit \"{}\". ", found->first,
                         limit->ToString());
    }
  }
  const auto limit = LimitOf(pod);
  if (limit && used.Total() > limit->Value()) {
    return fmt::format(
        "Pod ephemeral local storage usage exceeds the total limit of containers {}. ",
        limit->ToString());
  }
  return "";
}

std::string LowOnStorage(int64_t least_free, int64_t free) {
  return fmt::format(
      "The node was low on resource: ephemeral-storage. Threshold quantity: {}, available: {}. ",
      Bytes(least_free).ToString(), Bytes(free).ToString());
}

}  // namespace sextant::kubelet
