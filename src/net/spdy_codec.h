// SPDY/3.1 frames from bytes and to bytes; sans-IO. Internal to net (spdy.h speaks with it) and to
// tests that play the client.
//
// Header blocks are one zlib stream per direction, begun with the protocol's dictionary, so a block
// that cannot be read ends the connection. What a peer may make us hold is bounded: a control frame
// by kMaxSpdyControl, an unpacked header block by kMaxSpdyHeaders; data is handed on in pieces as
// it comes.
//
// Source: the SPDY/3.1 draft, sections 2.2 and 2.6; github.com/moby/spdystream for what Kubernetes'
// clients and kubelets make of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "net/http.h"

namespace sextant::net {

inline constexpr size_t kMaxSpdyControl = 64 << 10;
inline constexpr size_t kMaxSpdyHeaders = 64 << 10;

enum class SpdyType : uint16_t {
  kData = 0,  // not a number of the protocol: a data frame has no type
  kSynStream = 1,
  kSynReply = 2,
  kRstStream = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kHeaders = 8,
  kWindowUpdate = 9,
};

// Why a stream is reset.
enum class SpdyReset : uint32_t {
  kProtocolError = 1,
  kInvalidStream = 2,
  kRefusedStream = 3,
  kCancel = 5,
  kInternalError = 6,
};

struct SpdyFrame {
  SpdyType type = SpdyType::kData;
  uint32_t id = 0;        // the stream, the ping, or GOAWAY's last good stream
  bool fin = false;       // the sender will send nothing more on the stream
  uint32_t status = 0;    // kRstStream, kGoAway
  Headers headers;        // kSynStream, kSynReply, kHeaders
  std::string_view data;  // kData: valid until the next Feed
};

// The two directions of header compression.
class SpdyInflater {
 public:
  SpdyInflater();
  ~SpdyInflater();
  SpdyInflater(const SpdyInflater&) = delete;
  SpdyInflater& operator=(const SpdyInflater&) = delete;
  Result<std::string> Block(std::string_view packed);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class SpdyDeflater {
 public:
  SpdyDeflater();
  ~SpdyDeflater();
  SpdyDeflater(const SpdyDeflater&) = delete;
  SpdyDeflater& operator=(const SpdyDeflater&) = delete;
  std::string Block(std::string_view plain);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class SpdyDecoder {
 public:
  void Feed(std::string_view bytes);
  // The next frame, or the next piece of a data frame (`fin` comes with its last); nothing if more
  // bytes are needed. After an Error: end the connection. SETTINGS, WINDOW_UPDATE and types that
  // are not known are skipped: neither side of Kubernetes' streams uses SPDY's flow control.
  Result<std::optional<SpdyFrame>> Next();

 private:
  std::optional<SpdyFrame> DataPiece();
  Result<std::optional<SpdyFrame>> Control();
  Result<SpdyFrame> Read(SpdyType type, uint8_t flags, std::string_view payload);

  SpdyInflater inflater_;
  std::string in_;
  size_t at_ = 0;
  // The data frame that is being handed on.
  bool in_data_ = false;
  uint32_t data_id_ = 0;
  size_t data_left_ = 0;
  bool data_fin_ = false;
};

class SpdyEncoder {
 public:
  // No name may come twice in `headers`.
  std::string SynStream(uint32_t id, const Headers& headers, bool fin);
  std::string SynReply(uint32_t id, const Headers& headers);
  static std::string Data(uint32_t id, std::string_view bytes, bool fin);  // at most 16 MiB - 1
  static std::string RstStream(uint32_t id, SpdyReset why);
  static std::string Ping(uint32_t id);
  static std::string GoAway(uint32_t last_good, bool protocol_error);

 private:
  SpdyDeflater deflater_;
};

}  // namespace sextant::net
