#include "kubelet/log_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "base/file.h"
#include "kubelet/fd.h"
#include "kubelet/log_writer.h"

namespace sextant::kubelet {
namespace {

constexpr Duration kFollowPause = std::chrono::milliseconds(50);
constexpr size_t kReadBlock = 64 * 1024;
constexpr size_t kRawLineMax = kLogLineMax + 128;  // a record with its head; longer is not ours
constexpr int kMaxRotated = 64;

std::string FileName(const std::string& path, int number) {
  return number == 0 ? path : fmt::format("{}.{}", path, number);
}

struct Record {
  std::string_view timestamp, stream, text;
  bool partial = false;
};

// False: not a record in CRI format.
bool ParseRecord(std::string_view line, Record& record) {
  std::string_view* fields[] = {&record.timestamp, &record.stream};
  for (std::string_view* field : fields) {
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) return false;
    *field = line.substr(0, space);
    line.remove_prefix(space + 1);
  }
  if (line.size() < 2 || line[1] != ' ') return false;
  record.partial = line[0] == 'P';
  record.text = line.substr(2);
  return record.stream == "stdout" || record.stream == "stderr";
}

// Where the last `lines` lines of a file begin; `lines` is reduced by those that it has.
off_t TailStart(int fd, int64_t& lines) {
  struct stat info{};
  if (fstat(fd, &info) != 0) return 0;
  std::string block(kReadBlock, '\0');
  off_t end = info.st_size;
  bool last_byte = true;
  while (end > 0) {
    const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(kReadBlock));
    const ssize_t n = pread(fd, block.data(), static_cast<size_t>(end - begin), begin);
    if (n <= 0) return 0;
    for (ssize_t i = n - 1; i >= 0; --i) {
      const bool newline = block[static_cast<size_t>(i)] == '\n';
      if (newline && !last_byte && --lines == 0) return begin + i + 1;
      last_byte = false;
    }
    end = begin;
  }
  if (info.st_size > 0) --lines;
  return 0;
}

// Owned jointly by the handle, the task on the worker and the timer on the loop.
class State : public std::enable_shared_from_this<State> {
 public:
  State(std::string path, LogOptions options, Executor& worker, Loop& loop,
        std::function<bool()> still_running)
      : path_(std::move(path)),
        options_(std::move(options)),
        worker_(worker),
        loop_(loop),
        still_running_(std::move(still_running)) {
    if (options_.since_time) since_ = *options_.since_time;
    if (options_.since_seconds)
      since_ = loop_.clock().Now() - std::chrono::seconds(*options_.since_seconds);
    remaining_ = options_.limit_bytes.value_or(INT64_MAX);
  }

  void Next(LogReader::NextCallback callback) {
    worker_.Post([self = shared_from_this(), callback = std::move(callback)]() mutable {
      self->Read(std::move(callback));
    });
  }
  void Cancel() { cancelled_.store(true); }

 private:
  // On the worker.
  void Read(LogReader::NextCallback callback) {
    if (cancelled_.load()) return;
    std::string out;
    bool more = true;
    if (!begun_) more = Begin();
    while (more && remaining_ > 0 && out.size() < kLogChunk) more = Step(out);
    loop_.Post([self = shared_from_this(), callback = std::move(callback), out = std::move(out),
                full = remaining_ <= 0]() mutable {
      self->Deliver(std::move(callback), std::move(out), full);
    });
  }

  // On the loop. Nothing read means that the end of what is written was reached.
  void Deliver(LogReader::NextCallback callback, std::string out, bool full) {
    if (cancelled_.load()) return;
    if (!out.empty()) return callback(std::optional(std::move(out)));
    if (full || !options_.follow || last_look_) return callback(std::nullopt);
    if (!still_running_()) {
      last_look_ = true;  // what it wrote since our last read
      return Next(std::move(callback));
    }
    loop_.After(kFollowPause,
                [self = shared_from_this(), callback = std::move(callback)]() mutable {
                  if (!self->cancelled_.load()) self->Next(std::move(callback));
                });
  }

  // Opens the first file to read. False: there is none yet.
  bool Begin() {
    int first = 0;
    struct stat info{};
    while (first < kMaxRotated && stat(FileName(path_, first + 1).c_str(), &info) == 0) ++first;
    off_t start = 0;
    if (options_.tail_lines) {
      int64_t wanted = std::max<int64_t>(0, *options_.tail_lines);
      const int oldest = first;
      for (first = 0;; ++first) {
        const Fd file(open(FileName(path_, first).c_str(), O_RDONLY | O_CLOEXEC));
        if (!file.ok()) return false;
        if (wanted == 0) {
          start = lseek(file.get(), 0, SEEK_END);
          break;
        }
        start = TailStart(file.get(), wanted);
        if (wanted <= 0 || first == oldest) break;
      }
    }
    file_ = Fd(open(FileName(path_, first).c_str(), O_RDONLY | O_CLOEXEC));
    if (!file_.ok()) return false;
    lseek(file_.get(), start, SEEK_SET);
    begun_ = true;
    return true;
  }

  // Reads one block, or goes on to the next file. False: at the end of what is written.
  bool Step(std::string& out) {
    const size_t old = raw_.size();
    raw_.resize(old + kReadBlock);
    const ssize_t n = read(file_.get(), raw_.data() + old, kReadBlock);
    raw_.resize(old + static_cast<size_t>(std::max<ssize_t>(0, n)));
    if (n <= 0) return OpenNext();
    size_t at = 0;
    while (remaining_ > 0) {
      const size_t end = raw_.find('\n', at);
      if (end == std::string::npos) break;
      Line(std::string_view(raw_).substr(at, end - at), out);
      at = end + 1;
    }
    raw_.erase(0, at);
    if (raw_.size() > kRawLineMax) raw_.clear();
    return true;
  }

  // The file in hand has been read: is it still the newest? Found by inode, as names move on.
  bool OpenNext() {
    struct stat mine{}, other{};
    if (fstat(file_.get(), &mine) != 0) return false;
    for (int i = 0; i <= kMaxRotated; ++i) {
      if (stat(FileName(path_, i).c_str(), &other) != 0) {
        if (i == 0) return false;
        break;
      }
      if (other.st_ino != mine.st_ino || other.st_dev != mine.st_dev) continue;
      if (i == 0) return false;
      return OpenFile(FileName(path_, i - 1));
    }
    // Rotated away while we read it: go on with the oldest that is left.
    int oldest = 0;
    while (oldest < kMaxRotated && stat(FileName(path_, oldest + 1).c_str(), &other) == 0) ++oldest;
    return OpenFile(FileName(path_, oldest));
  }

  bool OpenFile(const std::string& name) {
    Fd next(open(name.c_str(), O_RDONLY | O_CLOEXEC));
    if (!next.ok()) return false;
    file_ = std::move(next);
    return true;
  }

  void Line(std::string_view line, std::string& out) {
    Record record;
    if (!ParseRecord(line, record)) return;
    if (options_.stream == "Stdout" && record.stream != "stdout") return;
    if (options_.stream == "Stderr" && record.stream != "stderr") return;
    if (since_) {
      const Result<Time> time = ParseTime(record.timestamp);
      if (!time || *time < *since_) return;
    }
    const size_t before = out.size();
    if (options_.timestamps && line_begins_) out.append(record.timestamp).push_back(' ');
    out.append(record.text);
    if (!record.partial) out.push_back('\n');
    line_begins_ = !record.partial;
    const auto size = static_cast<int64_t>(out.size() - before);
    if (size > remaining_) out.resize(before + static_cast<size_t>(remaining_));
    remaining_ -= std::min(size, remaining_);
  }

  const std::string path_;
  const LogOptions options_;
  Executor& worker_;
  Loop& loop_;
  const std::function<bool()> still_running_;
  std::atomic<bool> cancelled_ = false;
  bool last_look_ = false;  // on the loop
  // On the worker, one task at a time.
  std::optional<Time> since_;
  int64_t remaining_ = 0;
  bool begun_ = false;
  bool line_begins_ = true;
  Fd file_;
  std::string raw_;
};

class Reader : public LogReader {
 public:
  explicit Reader(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~Reader() override { state_->Cancel(); }
  void Next(NextCallback callback) override { state_->Next(std::move(callback)); }

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace

std::shared_ptr<LogReader> LogReader::Open(std::string path, LogOptions options, Executor& worker,
                                           Loop& loop, std::function<bool()> still_running) {
  return std::make_shared<Reader>(std::make_shared<State>(std::move(path), std::move(options),
                                                          worker, loop, std::move(still_running)));
}

}  // namespace sextant::kubelet
