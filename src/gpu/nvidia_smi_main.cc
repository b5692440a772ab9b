// nvidia-smi for containers of simulated GPU nodes: a static program that reads the cards it may
// see from kContainerInventoryPath and prints what gpu/smi.h makes of them.
#include <fcntl.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "gpu/inventory.h"
#include "gpu/json.h"
#include "gpu/smi.h"

namespace {

using sextant::gpu::Inventory;
using sextant::gpu::SmiResult;
using sextant::gpu::SmiTime;

constexpr char kNoDriver[] =
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that "
    "the latest NVIDIA driver is installed and running.\n\n";
constexpr int kNoDriverCode = 9;

bool ReadAll(const char* path, std::string& out) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char buffer[1 << 16];
  ssize_t n = 0;
  while ((n = read(fd, buffer, sizeof(buffer))) != 0) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 || out.size() > sextant::gpu::Json::kMaxBytes) break;
    out.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  return n == 0;
}

bool WriteAll(int fd, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

SmiTime Now() {
  timeval tv{};
  gettimeofday(&tv, nullptr);
  SmiTime now;
  localtime_r(&tv.tv_sec, &now.local);
  now.milliseconds = static_cast<int>(tv.tv_usec / 1000);
  return now;
}

bool Emit(const SmiResult& result) {
  if (result.file.empty()) return WriteAll(STDOUT_FILENO, result.out);
  const int fd = open(result.file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  const bool done = WriteAll(fd, result.out);
  close(fd);
  return done;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  // Where no mount namespace is to be had, a container's files lie below a directory of its own
  // (kubelet/isolation_landlock.cc).
  const char* root = getenv("SEXTANT_ROOT");
  const std::string path = std::string(root ? root : "") + sextant::gpu::kContainerInventoryPath;
  while (true) {
    std::string text;
    if (!ReadAll(path.c_str(), text)) {
      WriteAll(STDOUT_FILENO, kNoDriver);
      return kNoDriverCode;
    }
    const auto visible = sextant::gpu::ParseInventory(text);
    if (!visible) {
      WriteAll(STDERR_FILENO, visible.error().message + "\n");
      return kNoDriverCode;
    }
    const SmiResult result = sextant::gpu::RunSmi(*visible, args, Now());
    if (!Emit(result)) return 1;
    if (result.loop_ms == 0 || result.code != 0) return result.code;
    const timespec pause = {result.loop_ms / 1000, (result.loop_ms % 1000) * 1000000L};
    nanosleep(&pause, nullptr);
  }
}
