#include "base/executor.h"

#include <pthread.h>

#include <limits>

#include "base/check.h"

namespace sextant {
namespace {

constexpr size_t kMaxThreadName = 15;  // pthread_setname_np(3)

void NameThisThread(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, kMaxThreadName).c_str());
}

// When a timer of `delay` is due; a very long delay never overflows.
Duration Deadline(Duration now, Duration delay) {
  if (delay <= Duration{0}) return now;
  if (delay > Duration::max() - now) return Duration::max();
  return now + delay;
}

}  // namespace

EventLoop::EventLoop(std::string name, const Clock& clock) : name_(std::move(name)), clock_(clock) {
  thread_ = std::thread([this] { Run(); });
}

EventLoop::~EventLoop() { Stop(); }

void EventLoop::Post(Task task) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

TimerId EventLoop::After(Duration delay, Task task) {
  const Duration deadline = Deadline(clock_.Monotonic(), delay);
  TimerId id = 0;
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return 0;
    id = next_timer_++;
    timers_.emplace(std::pair{deadline, id}, std::move(task));
    deadlines_.emplace(id, deadline);
  }
  wake_.notify_one();
  return id;
}

bool EventLoop::Cancel(TimerId id) {
  Task dropped;  // destroyed after the lock is let go: its destructor may call us
  std::lock_guard lock(mutex_);
  const auto deadline = deadlines_.find(id);
  if (deadline == deadlines_.end()) return false;
  const auto timer = timers_.find({deadline->second, id});
  dropped = std::move(timer->second);
  timers_.erase(timer);
  deadlines_.erase(deadline);
  return true;
}

bool EventLoop::OnLoop() const { return std::this_thread::get_id() == thread_id_.load(); }

void EventLoop::Stop() {
  CHECK(!EventLoop::OnLoop());
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void EventLoop::Run() {
  thread_id_ = std::this_thread::get_id();
  NameThisThread(name_);
  std::vector<Task> batch;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    batch.swap(tasks_);
    if (!batch.empty()) {
      lock.unlock();
      for (Task& task : batch) {
        if (stopping_) break;
        // Moved out so that what the task holds is let go before the next one begins.
        Task current = std::move(task);
        current();
      }
      batch.clear();
      lock.lock();
    }
    // Timers that become due while these run wait for the next round: tasks are not starved.
    const Duration now = clock_.Monotonic();
    while (!stopping_ && !timers_.empty() && timers_.begin()->first.first <= now) {
      Task due = std::move(timers_.begin()->second);
      deadlines_.erase(timers_.begin()->first.second);
      timers_.erase(timers_.begin());
      lock.unlock();
      due();
      due = nullptr;
      lock.lock();
    }
    if (stopping_ || !tasks_.empty()) continue;
    if (timers_.empty()) {
      wake_.wait(lock);
    } else {
      // A day at most: far deadlines would overflow the wait's own clock.
      const Duration wait = timers_.begin()->first.first - clock_.Monotonic();
      wake_.wait_for(lock, std::min<Duration>(wait, std::chrono::hours{24}));
    }
  }
  // What is left dies here, on the loop's thread, without the lock.
  std::vector<Task> tasks = std::move(tasks_);
  auto timers = std::move(timers_);
  tasks_.clear();
  timers_.clear();
  deadlines_.clear();
  lock.unlock();
}

ThreadPool::ThreadPool(std::string name, int threads) : name_(std::move(name)) {
  CHECK(threads > 0);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this, i] { Run(i); });
}

ThreadPool::~ThreadPool() { Stop(); }

void ThreadPool::Post(Task task) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void ThreadPool::Stop() {
  std::deque<Task> dropped;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(tasks_);
  }
  dropped.clear();
  wake_.notify_all();
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

void ThreadPool::Run(int index) {
  NameThisThread(name_ + "-" + std::to_string(index));
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (stopping_) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
}

ManualLoop::ManualLoop(Time start) : start_(start) {}

void ManualLoop::Post(Task task) { tasks_.push_back(std::move(task)); }

TimerId ManualLoop::After(Duration delay, Task task) {
  const TimerId id = next_timer_++;
  const Duration deadline = Deadline(elapsed_, delay);
  timers_.emplace(std::pair{deadline, id}, std::move(task));
  deadlines_.emplace(id, deadline);
  return id;
}

bool ManualLoop::Cancel(TimerId id) {
  const auto deadline = deadlines_.find(id);
  if (deadline == deadlines_.end()) return false;
  const auto timer = timers_.find({deadline->second, id});
  const Task dropped = std::move(timer->second);
  timers_.erase(timer);
  deadlines_.erase(deadline);
  return true;
}

int ManualLoop::RunReady() {
  int ran = 0;
  for (;;) {
    std::vector<Task> batch;
    batch.swap(tasks_);
    for (Task& task : batch) {
      Task current = std::move(task);
      current();
      ++ran;
    }
    if (!tasks_.empty()) continue;
    if (timers_.empty() || timers_.begin()->first.first > elapsed_) return ran;
    Task due = std::move(timers_.begin()->second);
    deadlines_.erase(timers_.begin()->first.second);
    timers_.erase(timers_.begin());
    due();
    ++ran;
  }
}

int ManualLoop::Advance(Duration d) {
  const Duration target = Deadline(elapsed_, d);
  int ran = RunReady();
  while (!timers_.empty() && timers_.begin()->first.first <= target) {
    elapsed_ = timers_.begin()->first.first;
    ran += RunReady();
  }
  elapsed_ = target;
  return ran;
}

}  // namespace sextant
