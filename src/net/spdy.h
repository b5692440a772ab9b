// The server's side of a SPDY/3.1 connection, as Kubernetes streams port-forward, exec and attach:
// over a byte stream left by an HTTP upgrade, or over a WebSocket that carries its bytes
// (TunnelOver). The client opens streams with headers; what a stream is for is their user's
// business.
//
//   auto connection = SpdyConnection::Serve(stream, events);   // events: told until OnClosed
//   connection->Send(id, "bytes");
//   connection->End(id);
//
// Kubernetes' SPDY has no flow control per stream: who cannot take more pauses the connection.
// Threads: everything on the I/O thread of the stream. Ownership: the connection keeps itself and
// `events` alive until it is closed.
// Source: github.com/moby/spdystream, the peer on the other side of every Kubernetes client.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "net/http.h"
#include "net/spdy_codec.h"
#include "net/stream.h"

namespace sextant::net {

// Streams of one connection that are open at the same time; further ones are refused.
inline constexpr size_t kMaxSpdyStreams = 4096;

class SpdyConnection {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    // The client wants to open a stream: whether it may.
    virtual bool Accepts(const Headers& headers) = 0;
    virtual void OnStream(uint32_t id, const Headers& headers) = 0;
    virtual void OnData(uint32_t id, std::string_view bytes) = 0;
    virtual void OnEnd(uint32_t id) = 0;    // the client will send nothing more on it
    virtual void OnReset(uint32_t id) = 0;  // the client gave the stream up: it is gone
    virtual void OnClosed() = 0;            // last of all, once
  };

  static std::shared_ptr<SpdyConnection> Serve(std::shared_ptr<ByteStream> stream,
                                               std::shared_ptr<Events> events);
  virtual ~SpdyConnection() = default;

  // False if nothing was taken: the stream or the connection is closed, or holds too much.
  virtual bool Send(uint32_t id, std::string_view bytes) = 0;
  virtual void End(uint32_t id) = 0;  // nothing more will be sent on it
  virtual void Reset(uint32_t id, SpdyReset why) = 0;
  virtual void Close() = 0;  // after what is queued; says GOAWAY first
  virtual size_t buffered_bytes() const = 0;
  virtual void OnWritable(Task task) = 0;
  virtual void Pause() = 0;  // back pressure, of all streams
  virtual void Resume() = 0;
};

}  // namespace sextant::net
