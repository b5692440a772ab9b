#include "kubelet/container_files.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "kubelet/fd.h"
#include "kubelet/text_error.h"

namespace sextant::kubelet {
namespace {

std::string ParentOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

// Makes the directories of a sub path, step by step: never through a link that a container made.
Status MakeSubPath(const std::string& base, const std::string& sub_path, Owner owner) {
  Fd at(open(base.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (at.get() < 0) return Fail(FileError("open", base, errno));
  size_t begin = 0;
  while (begin < sub_path.size()) {
    const size_t end = std::min(sub_path.find('/', begin), sub_path.size());
    const std::string step = sub_path.substr(begin, end - begin);
    begin = end + 1;
    if (step.empty() || step == ".") continue;
    if (step == "..") return Fail(TextError("subPath \"" + sub_path + "\" leads out"));
    struct stat info{};
    if (fstatat(at.get(), step.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
      if (!S_ISDIR(info.st_mode)) return {};  // a file, or a link: the runtime looks where it leads
    } else if (mkdirat(at.get(), step.c_str(), 0755) != 0 && errno != EEXIST) {
      return Fail(FileError("mkdir", base + "/" + sub_path, errno));
    } else if (geteuid() == 0) {
      if (fchownat(at.get(), step.c_str(), owner.uid, owner.gid, AT_SYMLINK_NOFOLLOW) != 0)
        return Fail(FileError("chown", base + "/" + sub_path, errno));
    }
    at = Fd(openat(at.get(), step.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (at.get() < 0) return Fail(FileError("open", base + "/" + sub_path, errno));
  }
  return {};
}

}  // namespace

Status MakeContainerFiles(const std::string& log_path, const std::string& message_path,
                          const std::vector<Mount>& mounts, Owner owner) {
  RETURN_IF_ERROR(MakeDirectories(ParentOf(log_path), 0755));
  if (!message_path.empty()) {
    RETURN_IF_ERROR(MakeDirectories(ParentOf(message_path), 0755));
    RETURN_IF_ERROR(WriteContainerFile(message_path, "", 0666, owner));
  }
  for (const Mount& mount : mounts) {
    if (mount.sub_path.empty()) continue;
    RETURN_IF_ERROR(MakeSubPath(mount.host_path, mount.sub_path, owner));
  }
  return {};
}

Status WriteContainerFile(const std::string& path, std::string_view data, uint32_t mode,
                          Owner owner) {
  const std::string temporary = path + ".tmp";
  unlink(temporary.c_str());
  {
    const Fd file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.get() < 0) return Fail(FileError("open", temporary, errno));
    if (write(file.get(), data.data(), data.size()) != static_cast<ssize_t>(data.size()))
      return Fail(FileError("write", temporary, errno));
    if (fchmod(file.get(), mode) != 0) return Fail(FileError("chmod", temporary, errno));
    if (geteuid() == 0 && fchown(file.get(), owner.uid, owner.gid) != 0)
      return Fail(FileError("chown", temporary, errno));
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) return Fail(FileError("rename", path, errno));
  return {};
}

std::string ReadTerminationMessage(const std::string& message_path) {
  // The file was bind mounted, so it is still ours; a bounded read, whatever stands in it.
  const Fd file(open(message_path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  std::string text(kMaxTerminationMessage, '\0');
  const ssize_t size = file.get() < 0 ? 0 : read(file.get(), text.data(), text.size());
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return text;
}

Status AppendLogLine(const std::string& log_path, std::string_view line, Time at) {
  RETURN_IF_ERROR(MakeDirectories(ParentOf(log_path), 0755));
  const Fd file(open(log_path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640));
  if (file.get() < 0) return Fail(FileError("open", log_path, errno));
  const std::string text = fmt::format("{} stdout F {}\n", FormatMicroTime(at), line);
  if (write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return Fail(FileError("write", log_path, errno));
  }
  return {};
}

}  // namespace sextant::kubelet
