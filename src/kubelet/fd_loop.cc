#include "kubelet/fd_loop.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>

#include "base/check.h"

namespace sextant::kubelet {
namespace {
constexpr int kEventsPerWait = 64;
}  // namespace

FdLoop::FdLoop(std::string name, const Clock& clock)
    : name_(std::move(name)),
      clock_(clock),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  CHECK(epoll_.ok() && wake_.ok());
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 0}};
  CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) == 0);
  thread_ = std::thread([this] { Run(); });
}

FdLoop::~FdLoop() { Stop(); }

void FdLoop::Post(Task task) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    tasks_.push_back(std::move(task));
  }
  uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
}

void FdLoop::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

FdLoop::WatchId FdLoop::Watch(int fd, uint32_t events, FdCallback callback) {
  DCHECK(OnLoop());
  const WatchId id = next_watch_++;
  epoll_event event{.events = events, .data = {.u64 = id}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return 0;
  watches_.emplace(id, std::make_shared<Watched>(Watched{fd, std::move(callback)}));
  return id;
}

void FdLoop::Modify(WatchId id, uint32_t events) {
  auto it = watches_.find(id);
  if (it == watches_.end()) return;
  epoll_event event{.events = events, .data = {.u64 = id}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, it->second->fd, &event);
}

void FdLoop::Unwatch(WatchId id) {
  auto it = watches_.find(id);
  if (it == watches_.end()) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, it->second->fd, nullptr);
  watches_.erase(it);
}

TimerId FdLoop::After(Duration delay, Task task) {
  DCHECK(OnLoop());
  const TimerId id = next_timer_++;
  const Duration deadline = clock_.Monotonic() + std::max(delay, Duration{0});
  timers_.emplace(std::pair(deadline, id), std::move(task));
  deadlines_.emplace(id, deadline);
  return id;
}

void FdLoop::Cancel(TimerId id) {
  auto it = deadlines_.find(id);
  if (it == deadlines_.end()) return;
  timers_.erase({it->second, id});
  deadlines_.erase(it);
}

void FdLoop::RunTasks() {
  std::vector<Task> tasks;
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    tasks.swap(tasks_);
  }
  for (Task& task : tasks) task();
}

int FdLoop::RunTimers() {
  const Duration now = clock_.Monotonic();
  while (!timers_.empty()) {
    auto first = timers_.begin();
    if (first->first.first > now) {
      const auto wait = std::chrono::ceil<std::chrono::milliseconds>(first->first.first - now);
      return static_cast<int>(std::min<int64_t>(wait.count(), 60'000));
    }
    Task task = std::move(first->second);
    deadlines_.erase(first->first.second);
    timers_.erase(first);
    task();
  }
  return -1;
}

void FdLoop::Run() {
  thread_id_.store(std::this_thread::get_id());
  pthread_setname_np(pthread_self(), name_.substr(0, 15).c_str());
  // Signals are for the lab's other threads; a broken pipe here is an error of write alone.
  sigset_t blocked;
  sigfillset(&blocked);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
  std::array<epoll_event, kEventsPerWait> events;
  for (;;) {
    const int timeout = RunTimers();
    const int n = epoll_wait(epoll_.get(), events.data(), kEventsPerWait, timeout);
    bool woken = false;
    for (int i = 0; i < n; ++i) {
      // Copied: the structure is packed, so nothing may refer into it.
      const WatchId id = events[static_cast<size_t>(i)].data.u64;
      const uint32_t happened = events[static_cast<size_t>(i)].events;
      if (id == 0) {
        woken = true;
        continue;
      }
      auto it = watches_.find(id);
      if (it == watches_.end()) continue;
      const std::shared_ptr<Watched> watched = it->second;  // the callback may remove it
      watched->callback(happened);
    }
    if (!woken) continue;
    uint64_t count;
    (void)!read(wake_.get(), &count, sizeof count);
    RunTasks();
    std::lock_guard lock(mutex_);
    if (stopping_) break;
  }
  // What tasks, watches and timers own is destroyed on this thread.
  watches_.clear();
  timers_.clear();
}

}  // namespace sextant::kubelet
