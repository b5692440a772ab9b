// Byte streams over TCP, TLS and unix sockets: dialled, accepted, adopted from a descriptor or left
// over after an HTTP upgrade.
//
//   Dial(io, {.address = "10.0.0.7", .port = 80}, seconds(5), [](Result<...> stream) { ... });
//   Splice(a, b);   // copies both ways until both ends are closed
//
// Threads: every method from any thread; handlers and callbacks run on the stream's I/O thread. A
// stream closes when the last reference outside net is dropped.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "net/http.h"
#include "net/io.h"

namespace sextant::net {

// A stream that holds more than this for a slow reader takes no more: Send answers false.
inline constexpr size_t kMaxStreamBuffer = 4 << 20;

class ByteStream {
 public:
  struct Handlers {
    std::move_only_function<void(std::string_view bytes)> on_data;  // valid during the call
    std::move_only_function<void()> on_end;  // the peer will send nothing more; may be empty
    // Last of all, once. `why` is an Error if the connection broke.
    std::move_only_function<void(Status why)> on_close;
  };

  virtual ~ByteStream() = default;
  // Begins reading. Once, before that nothing is read.
  virtual void Start(Handlers handlers) = 0;
  // False, and nothing is taken, if the stream is closed or holds more than kMaxStreamBuffer.
  virtual bool Send(Buffer bytes) = 0;
  bool Send(std::string bytes) { return Send(MakeBuffer(std::move(bytes))); }
  // No more bytes will follow: half close, after what is queued is sent.
  virtual void End() = 0;
  // Sends what is queued, then closes both ways.
  virtual void Close() = 0;
  virtual size_t buffered_bytes() const = 0;
  // Runs once when at most half of kMaxStreamBuffer is held, or when closed.
  virtual void OnWritable(Task task) = 0;
  // Back pressure: stops and resumes on_data; the last call counts. Called on the I/O thread, Pause
  // holds at once.
  virtual void Pause() = 0;
  virtual void Resume() = 0;
  virtual const Peer& peer() const = 0;
};

using DialDone = std::move_only_function<void(Result<std::shared_ptr<ByteStream>>)>;
// Connects; `done` runs on the I/O thread.
void Dial(IoThread& io, Endpoint to, Duration timeout, DialDone done);
// Takes over a connected stream socket (made non-blocking here).
std::shared_ptr<ByteStream> AdoptSocket(IoThread& io, int fd);

// Copies a → b and b → a with back pressure and half closes until both are closed. Starts both.
void Splice(const std::shared_ptr<ByteStream>& a, const std::shared_ptr<ByteStream>& b);

// Accepts plain connections on `at` (port 0: any free one) until dropped.
class StreamListener {
 public:
  using Accepted = std::move_only_function<void(std::shared_ptr<ByteStream>)>;
  static Result<std::unique_ptr<StreamListener>> Start(IoThread& io, const Endpoint& at,
                                                       Accepted accepted);
  virtual ~StreamListener() = default;
  virtual const Endpoint& endpoint() const = 0;  // with the real port
};

}  // namespace sextant::net
