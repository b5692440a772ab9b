#include "kubelet/stream_pump.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>

#include "kubelet/spawn.h"

namespace sextant::kubelet {
namespace {

constexpr size_t kReadBlock = 64 * 1024;
constexpr Duration kBudgetPeriod = std::chrono::milliseconds(50);
constexpr size_t kPeriodsPerSecond = 20;
constexpr size_t kBudget = kPumpRate / kPeriodsPerSecond;
constexpr char kEndOfTransmission = 4;

}  // namespace

OutputPump::OutputPump(FdLoop& loop, Fd fd, DataCallback on_data, std::function<void()> on_end)
    : loop_(loop),
      fd_(std::move(fd)),
      on_data_(std::move(on_data)),
      on_end_(std::move(on_end)),
      budget_(kBudget) {
  SetNonBlocking(fd_);
  Update();
}

OutputPump::~OutputPump() {
  *alive_ = false;
  loop_.Unwatch(watch_);
  loop_.Cancel(timer_);
}

void OutputPump::Pause(bool paused) {
  paused_ = paused;
  Update();
}

void OutputPump::WriterEnded() {
  writer_ended_ = true;
  Update();
}

void OutputPump::Update() {
  const bool want = !ended_ && !paused_ && !throttled_;
  if (!want) {
    loop_.Unwatch(std::exchange(watch_, 0));
    return;
  }
  // Without a writer there may be nothing to wait for: look at once, but not inside the caller.
  if (writer_ended_) {
    loop_.Cancel(timer_);
    timer_ = loop_.After(Duration{0}, [this] { Read(); });
  } else if (watch_ == 0) {
    watch_ = loop_.Watch(fd_.get(), EPOLLIN, [this](uint32_t) { Read(); });
  }
}

void OutputPump::Read() {
  std::array<char, kReadBlock> block;
  const std::shared_ptr<bool> alive = alive_;  // callbacks may destroy us
  while (!ended_ && !paused_) {
    if (budget_ == 0) {
      throttled_ = true;
      loop_.Unwatch(std::exchange(watch_, 0));
      loop_.Cancel(timer_);
      timer_ = loop_.After(kBudgetPeriod, [this] {
        throttled_ = false;
        budget_ = kBudget;
        Update();
      });
      return;
    }
    const ssize_t n = ::read(fd_.get(), block.data(), std::min(block.size(), budget_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      if (writer_ended_) return End();
      break;
    }
    if (n <= 0) return End();  // EIO: the last holder of the terminal has gone
    budget_ -= static_cast<size_t>(n);
    on_data_(std::string_view(block.data(), static_cast<size_t>(n)));
    if (!*alive) return;
  }
  // A slow stream never meets the limit: a wait for data refills the budget.
  if (budget_ < kBudget / 2 && !throttled_) {
    loop_.Cancel(timer_);
    timer_ = loop_.After(kBudgetPeriod, [this] { budget_ = kBudget; });
  }
}

void OutputPump::End() {
  ended_ = true;
  loop_.Unwatch(std::exchange(watch_, 0));
  loop_.Cancel(timer_);
  fd_.Reset();
  on_end_();
}

InputPump::InputPump(FdLoop& loop, Fd fd, std::function<void(size_t)> on_written)
    : loop_(loop), fd_(std::move(fd)), on_written_(std::move(on_written)) {
  SetNonBlocking(fd_);
}

InputPump::~InputPump() { Close(); }

void InputPump::Write(std::string_view data) {
  if (!fd_.ok() || close_after_) {
    on_written_(data.size());
    return;
  }
  queue_.append(data);
  Push();
}

void InputPump::CloseAfter(bool terminal) {
  if (terminal) {
    if (fd_.ok() && !close_after_) Write(std::string_view(&kEndOfTransmission, 1));
    return;
  }
  close_after_ = true;
  Push();
}

void InputPump::Push() {
  while (fd_.ok() && !queue_.empty()) {
    const ssize_t n = ::write(fd_.get(), queue_.data(), queue_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      if (watch_ == 0) watch_ = loop_.Watch(fd_.get(), EPOLLOUT, [this](uint32_t) { Push(); });
      return;
    }
    if (n < 0) return Close();  // the program reads no more
    queue_.erase(0, static_cast<size_t>(n));
    on_written_(static_cast<size_t>(n));
  }
  loop_.Unwatch(std::exchange(watch_, 0));
  if (close_after_) Close();
}

void InputPump::Close() {
  loop_.Unwatch(std::exchange(watch_, 0));
  fd_.Reset();
  if (!queue_.empty()) on_written_(queue_.size());
  queue_.clear();
}

}  // namespace sextant::kubelet
