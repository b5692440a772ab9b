// The two directions of a child's standard streams, on the runtime's FdLoop.
//
// OutputPump reads a pipe or a terminal to its end, at most kPumpRate a second (a Pod that floods
// its log waits, nobody else does), and stops while paused. InputPump writes what it is given, as
// fast as the child takes it.
//
// Threads: the loop's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kubelet/fd.h"
#include "kubelet/fd_loop.h"

namespace sextant::kubelet {

inline constexpr size_t kPumpRate = 16u << 20;  // bytes a second of one stream

class OutputPump {
 public:
  using DataCallback = std::function<void(std::string_view)>;
  // `on_end` is called once, at the end of the stream; never from the constructor.
  OutputPump(FdLoop& loop, Fd fd, DataCallback on_data, std::function<void()> on_end);
  ~OutputPump();
  OutputPump(const OutputPump&) = delete;
  OutputPump& operator=(const OutputPump&) = delete;

  void Pause(bool paused);
  // The writer has ended: what is in the pipe is all there will be, even if somebody else (a
  // process that got away) holds the other end.
  void WriterEnded();
  bool ended() const { return ended_; }
  // Reads what is there now, for who cannot wait for the loop.
  void Drain() { Read(); }

 private:
  void Read();
  void End();
  void Update();

  FdLoop& loop_;
  Fd fd_;
  DataCallback on_data_;
  std::function<void()> on_end_;
  FdLoop::WatchId watch_ = 0;
  TimerId timer_ = 0;
  size_t budget_;
  bool paused_ = false;
  bool throttled_ = false;
  bool writer_ended_ = false;
  bool ended_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class InputPump {
 public:
  // `on_written` hears how many bytes left the queue (also those dropped at a broken pipe).
  InputPump(FdLoop& loop, Fd fd, std::function<void(size_t)> on_written);
  ~InputPump();
  InputPump(const InputPump&) = delete;
  InputPump& operator=(const InputPump&) = delete;

  void Write(std::string_view data);
  // Closes after what is queued. A terminal cannot be half closed: it gets end-of-transmission.
  void CloseAfter(bool terminal);

 private:
  void Push();
  void Close();

  FdLoop& loop_;
  Fd fd_;
  std::function<void(size_t)> on_written_;
  FdLoop::WatchId watch_ = 0;
  std::string queue_;
  bool close_after_ = false;
};

}  // namespace sextant::kubelet
