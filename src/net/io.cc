#include "net/io.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace sextant::net {
namespace {

constexpr int kMaxEvents = 256;

// Blocks: runs on a thread of its own.
Result<std::vector<Endpoint>> LookUp(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  if (const int rc = getaddrinfo(host.c_str(), nullptr, &hints, &list); rc != 0) {
    return Fail(Error{.code = 0, .message = fmt::format("lookup {}: {}", host, gai_strerror(rc))});
  }
  std::vector<Endpoint> out;
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
    char text[NI_MAXHOST] = {};
    if (getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) ==
        0) {
      out.push_back({.address = text, .port = port, .path = {}});
    }
  }
  freeaddrinfo(list);
  if (out.empty()) {
    return Fail(Error{.code = 0, .message = fmt::format("lookup {}: no address", host)});
  }
  return out;
}

}  // namespace

bool IsIpAddress(const std::string& text) {
  std::array<unsigned char, 16> bytes;
  return inet_pton(AF_INET, text.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1;
}

std::string Endpoint::ToString() const {
  if (is_unix()) return "unix:" + path;
  return address.find(':') == std::string::npos ? fmt::format("{}:{}", address, port)
                                                : fmt::format("[{}]:{}", address, port);
}

// Shared with all that may post after the IoThread has gone.
struct IoThread::Impl : Executor {
  explicit Impl(const Clock& c) : clock(c) {}

  struct Watched {
    FdHandler* handler = nullptr;
    uint32_t events = 0;
    uint32_t generation = 0;  // tells a reused descriptor from the one an event was fetched for
  };

  void Run();
  void RunTasks();
  // Runs what is due; returns how long to sleep in ms, -1: until woken.
  int RunTimers();
  void Dispatch(const epoll_event& event);
  void Control(int fd, bool read, bool write);
  void StopHandlers();
  void Wake() const {
    const uint64_t one = 1;
    CHECK(write(wake_fd, &one, sizeof one) == sizeof one || errno == EAGAIN);
  }
  void Post(Task task) override {
    bool wake = false;
    {
      const std::lock_guard lock(mutex);
      if (stopping) return;
      wake = tasks.empty();
      tasks.push_back(std::move(task));
    }
    if (wake && std::this_thread::get_id() != thread_id) Wake();
  }

  const Clock& clock;
  int epoll_fd = -1;
  int wake_fd = -1;
  std::vector<Watched> watched;  // by descriptor; I/O thread only
  std::mutex mutex;
  std::vector<Task> tasks;                              // guarded by mutex
  std::map<std::pair<Duration, TimerId>, Task> timers;  // guarded by mutex
  std::unordered_map<TimerId, Duration> deadlines;      // guarded by mutex
  TimerId next_timer = 1;                               // guarded by mutex
  bool stopping = false;                                // guarded by mutex
  std::atomic<std::thread::id> thread_id;
  std::thread thread;
};

void IoThread::Impl::Run() {
  std::array<epoll_event, kMaxEvents> events;
  while (true) {
    RunTasks();
    int timeout_ms = RunTimers();
    {
      const std::lock_guard lock(mutex);
      if (stopping) break;
      if (!tasks.empty()) timeout_ms = 0;
    }
    const int count = epoll_wait(epoll_fd, events.data(), kMaxEvents, timeout_ms);
    CHECK(count >= 0 || errno == EINTR);
    for (int i = 0; i < count; ++i) Dispatch(events[static_cast<size_t>(i)]);
  }
  StopHandlers();
}

void IoThread::Impl::RunTasks() {
  std::vector<Task> batch;
  {
    const std::lock_guard lock(mutex);
    batch.swap(tasks);
  }
  for (Task& task : batch) task();
}

int IoThread::Impl::RunTimers() {
  while (true) {
    Task task;
    {
      const std::lock_guard lock(mutex);
      if (timers.empty()) return -1;
      const auto first = timers.begin();
      const Duration left = first->first.first - clock.Monotonic();
      if (left > Duration::zero()) {
        const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
        return static_cast<int>(std::min<int64_t>(ms, 60'000));
      }
      task = std::move(first->second);
      deadlines.erase(first->first.second);
      timers.erase(first);
    }
    task();
  }
}

void IoThread::Impl::Dispatch(const epoll_event& event) {
  const auto fd = static_cast<size_t>(event.data.u64 & 0xffffffff);
  if (static_cast<int>(fd) == wake_fd) {
    uint64_t count = 0;
    CHECK(read(wake_fd, &count, sizeof count) == sizeof count || errno == EAGAIN);
    return;
  }
  const Watched& w = watched[fd];
  if (w.handler == nullptr || w.generation != event.data.u64 >> 32) return;
  const bool broken = (event.events & (EPOLLERR | EPOLLHUP)) != 0;
  w.handler->OnReady(broken || (event.events & EPOLLIN) != 0,
                     broken || (event.events & EPOLLOUT) != 0);
}

void IoThread::Impl::Control(int fd, bool read, bool write) {
  Watched& w = watched[static_cast<size_t>(fd)];
  const uint32_t events = (read ? uint32_t{EPOLLIN} : 0) | (write ? uint32_t{EPOLLOUT} : 0);
  if (events == w.events) return;
  // epoll always reports errors and hang-ups, so without interest the descriptor is taken out:
  // level-triggered, they would be reported without end.
  const int op = w.events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
  w.events = events;
  epoll_event event{};
  event.events = events;
  event.data.u64 = uint64_t{w.generation} << 32 | static_cast<uint32_t>(fd);
  CHECK(epoll_ctl(epoll_fd, op, fd, &event) == 0);
}

void IoThread::Impl::StopHandlers() {
  for (size_t fd = 0; fd < watched.size(); ++fd) {
    if (watched[fd].handler != nullptr) watched[fd].handler->OnStop();
  }
}

IoThread::IoThread(const std::string& name, const Clock& clock)
    : impl_(std::make_shared<Impl>(clock)) {
  impl_->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  impl_->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  CHECK(impl_->epoll_fd >= 0 && impl_->wake_fd >= 0);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<uint32_t>(impl_->wake_fd);
  CHECK(epoll_ctl(impl_->epoll_fd, EPOLL_CTL_ADD, impl_->wake_fd, &event) == 0);
  impl_->thread = std::thread([impl = impl_.get(), name = name.substr(0, 15)] {
    pthread_setname_np(pthread_self(), name.c_str());
    impl->thread_id = std::this_thread::get_id();
    impl->Run();
  });
}

IoThread::~IoThread() {
  Stop();
  close(impl_->epoll_fd);
  close(impl_->wake_fd);
}

void IoThread::Post(Task task) { impl_->Post(std::move(task)); }

TimerId IoThread::After(Duration delay, Task task) {
  Impl& impl = *impl_;
  TimerId id = 0;
  bool first = false;
  {
    const std::lock_guard lock(impl.mutex);
    if (impl.stopping) return 0;
    id = impl.next_timer++;
    const Duration due = impl.clock.Monotonic() + std::max(delay, Duration::zero());
    impl.deadlines.emplace(id, due);
    first = impl.timers.emplace(std::pair(due, id), std::move(task)).first == impl.timers.begin();
  }
  if (first && !OnLoop()) impl.Wake();
  return id;
}

bool IoThread::Cancel(TimerId id) {
  Task dropped;  // destroyed without the lock
  const std::lock_guard lock(impl_->mutex);
  const auto it = impl_->deadlines.find(id);
  if (it == impl_->deadlines.end()) return false;
  const auto timer = impl_->timers.find({it->second, id});
  dropped = std::move(timer->second);
  impl_->timers.erase(timer);
  impl_->deadlines.erase(it);
  return true;
}

const Clock& IoThread::clock() const { return impl_->clock; }
bool IoThread::OnLoop() const { return std::this_thread::get_id() == impl_->thread_id.load(); }

void IoThread::Stop() {
  CHECK(!OnLoop());
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->Wake();
  if (impl_->thread.joinable()) impl_->thread.join();
  // What was left may own objects that post or cancel in turn: let go of it without the lock.
  std::vector<Task> tasks;
  std::map<std::pair<Duration, TimerId>, Task> timers;
  {
    const std::lock_guard lock(impl_->mutex);
    tasks.swap(impl_->tasks);
    timers.swap(impl_->timers);
    impl_->deadlines.clear();
  }
}

void IoThread::Watch(int fd, bool read, bool write, FdHandler* handler) {
  DCHECK(OnLoop());
  auto& watched = impl_->watched;
  if (static_cast<size_t>(fd) >= watched.size()) watched.resize(static_cast<size_t>(fd) + 1);
  Impl::Watched& w = watched[static_cast<size_t>(fd)];
  CHECK(w.handler == nullptr);
  w.handler = handler;
  ++w.generation;
  impl_->Control(fd, read, write);
}

void IoThread::Change(int fd, bool read, bool write) {
  DCHECK(OnLoop());
  impl_->Control(fd, read, write);
}

void IoThread::Unwatch(int fd) {
  Impl::Watched& w = impl_->watched[static_cast<size_t>(fd)];
  CHECK(w.handler != nullptr);
  impl_->Control(fd, false, false);
  w.handler = nullptr;
}

void IoThread::Resolve(std::string host, uint16_t port, ResolveDone done) {
  if (IsIpAddress(host)) {
    std::vector<Endpoint> one{{.address = std::move(host), .port = port, .path = {}}};
    Post([one = std::move(one), done = std::move(done)]() mutable { done(std::move(one)); });
    return;
  }
  // getaddrinfo blocks for as long as the resolver likes and cannot be cancelled, so the thread is
  // on its own; it holds nothing but the loop's queue.
  std::thread([impl = impl_, host = std::move(host), port, done = std::move(done)]() mutable {
    auto result = LookUp(host, port);
    impl->Post([result = std::move(result), done = std::move(done)]() mutable {
      done(std::move(result));
    });
  }).detach();
}

std::shared_ptr<Executor> IoThread::poster() const { return impl_; }

}  // namespace sextant::net
