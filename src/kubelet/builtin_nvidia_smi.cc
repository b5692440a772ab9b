#include "kubelet/builtin_nvidia_smi.h"

#include <time.h>

#include "gpu/inventory.h"
#include "gpu/smi.h"

namespace sextant::kubelet {
namespace {

// As src/gpu/nvidia_smi_main.cc: the driver's own words where no card is visible.
constexpr std::string_view kNoDriver =
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that "
    "the latest NVIDIA driver is installed and running.\n\n";
constexpr int kNoDriverCode = 9;

}  // namespace

BuiltinProgram NvidiaSmiProgram(const Clock& clock) {
  return [&clock](const BuiltinCall& call, std::string& out, std::string& err) {
    const auto file = call.files.find(gpu::kContainerInventoryPath);
    if (file == call.files.end()) {
      out += kNoDriver;
      return kNoDriverCode;
    }
    const Result<gpu::Inventory> visible = gpu::ParseInventory(file->second);
    if (!visible) {
      err += visible.error().message + "\n";
      return kNoDriverCode;
    }
    const Time time = clock.Now();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
    const time_t epoch = seconds.time_since_epoch().count();
    gpu::SmiTime now;
    localtime_r(&epoch, &now.local);
    now.milliseconds = static_cast<int>((time - seconds).count() / 1'000'000);
    const std::vector<std::string> args(call.argv.begin() + 1, call.argv.end());
    gpu::SmiResult result = gpu::RunSmi(*visible, args, now);
    out += result.out;
    return result.code;
  };
}

}  // namespace sextant::kubelet
