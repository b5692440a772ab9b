#include "net/spdy_codec.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/check.h"

namespace sextant::net {
namespace {

constexpr uint32_t kVersion = 3;
constexpr uint8_t kFlagFin = 1;
constexpr size_t kHeadSize = 8;  // of both kinds of frames
constexpr size_t kInflateStep = 4 << 10;
constexpr size_t kCompactAfter = 64 << 10;

// The draft's dictionary is a list of words, each with its length before it, and a tail of plain
// text; both sides must have it to the byte (Adler-32 e3c6a7c2).
constexpr std::string_view kDictionaryWords[] = {
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
    "origin",
};
constexpr std::string_view kDictionaryTail =
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
    "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 "
    "Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age="
    "gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

void PutNumber(std::string& out, uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(number >> shift);
}

uint32_t Number(std::string_view bytes, size_t at, size_t size = 4) {
  uint32_t number = 0;
  for (size_t i = 0; i < size; ++i) number = number << 8 | static_cast<uint8_t>(bytes[at + i]);
  return number;
}

const std::string& Dictionary() {
  static const std::string* const dictionary = [] {
    auto* text = new std::string;
    for (std::string_view word : kDictionaryWords) {
      PutNumber(*text, static_cast<uint32_t>(word.size()));
      *text += word;
    }
    *text += kDictionaryTail;
    return text;
  }();
  return *dictionary;
}

const Bytef* Bytes(std::string_view text) { return reinterpret_cast<const Bytef*>(text.data()); }

Error Broken(std::string_view what) {
  return BadRequest(fmt::format("the SPDY connection is broken: {}", what));
}

// A block: how many headers, then name and value of each, lengths before. Several values of a name
// have a zero byte between them.
Result<Headers> ReadHeaders(std::string_view block) {
  const auto take = [&](std::string_view& text) {
    if (block.size() < 4) return false;
    const size_t size = Number(block, 0);
    block.remove_prefix(4);
    if (block.size() < size) return false;
    text = block.substr(0, size);
    block.remove_prefix(size);
    return true;
  };
  if (block.size() < 4) return Fail(Broken("a header block is cut off"));
  const uint32_t count = Number(block, 0);
  block.remove_prefix(4);
  Headers headers;
  for (uint32_t i = 0; i < count; ++i) {
    std::string_view name;
    std::string_view value;
    if (!take(name) || !take(value)) return Fail(Broken("a header block is cut off"));
    if (name.empty() || name != AsciiLower(name) || headers.Has(name)) {
      return Fail(Broken("a header's name is empty, has capitals, or comes twice"));
    }
    for (size_t begin = 0; begin <= value.size();) {
      const size_t end = std::min(value.find('\0', begin), value.size());
      headers.Add(name, value.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  if (!block.empty()) return Fail(Broken("a header block has more than its headers"));
  return headers;
}

std::string WriteHeaders(const Headers& headers) {
  std::string out;
  PutNumber(out, static_cast<uint32_t>(headers.size()));
  for (const Header& header : headers) {
    PutNumber(out, static_cast<uint32_t>(header.name.size()));
    out += header.name;
    PutNumber(out, static_cast<uint32_t>(header.value.size()));
    out += header.value;
  }
  return out;
}

std::string ControlFrame(SpdyType type, uint8_t flags, std::string_view payload) {
  std::string out;
  out.reserve(kHeadSize + payload.size());
  PutNumber(out, 0x80000000U | kVersion << 16 | static_cast<uint16_t>(type));
  PutNumber(out, static_cast<uint32_t>(flags) << 24 | static_cast<uint32_t>(payload.size()));
  out += payload;
  return out;
}

std::string Numbers(std::initializer_list<uint32_t> numbers) {
  std::string out;
  for (uint32_t number : numbers) PutNumber(out, number);
  return out;
}

// The bytes of a control frame's payload before its header block or, without one, all of them.
size_t FixedSize(SpdyType type) {
  switch (type) {
    case SpdyType::kSynStream:
      return 10;
    case SpdyType::kSynReply:
    case SpdyType::kHeaders:
    case SpdyType::kPing:
      return 4;
    case SpdyType::kRstStream:
    case SpdyType::kGoAway:
      return 8;
    default:
      return 0;
  }
}

bool HasHeaders(SpdyType type) {
  return type == SpdyType::kSynStream || type == SpdyType::kSynReply || type == SpdyType::kHeaders;
}

}  // namespace

struct SpdyInflater::State {
  z_stream z{};
};

SpdyInflater::SpdyInflater() : state_(std::make_unique<State>()) {
  CHECK(inflateInit(&state_->z) == Z_OK);
}
SpdyInflater::~SpdyInflater() { inflateEnd(&state_->z); }

Result<std::string> SpdyInflater::Block(std::string_view packed) {
  z_stream& z = state_->z;
  z.next_in = const_cast<Bytef*>(Bytes(packed));
  z.avail_in = static_cast<uInt>(packed.size());
  std::string out;
  while (true) {
    const size_t before = out.size();
    if (before > kMaxSpdyHeaders) return Fail(Broken("a header block is too big"));
    out.resize(before + kInflateStep);
    z.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    z.avail_out = kInflateStep;
    const int got = inflate(&z, Z_SYNC_FLUSH);
    out.resize(out.size() - z.avail_out);
    if (got == Z_NEED_DICT) {
      const std::string& dictionary = Dictionary();
      if (inflateSetDictionary(&z, Bytes(dictionary), static_cast<uInt>(dictionary.size())) !=
          Z_OK) {
        return Fail(Broken("header blocks are packed with another dictionary"));
      }
      continue;
    }
    // Z_BUF_ERROR: all of the input is used up, and all of the output is out.
    if (got != Z_OK && got != Z_BUF_ERROR) return Fail(Broken("a header block cannot be unpacked"));
    if (z.avail_in == 0 && z.avail_out > 0) return out;
  }
}

struct SpdyDeflater::State {
  z_stream z{};
};

SpdyDeflater::SpdyDeflater() : state_(std::make_unique<State>()) {
  // A small window: our blocks are a few words, and there is one of these a connection.
  CHECK(deflateInit2(&state_->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 11, 3, Z_DEFAULT_STRATEGY) ==
        Z_OK);
  const std::string& dictionary = Dictionary();
  CHECK(deflateSetDictionary(&state_->z, Bytes(dictionary), static_cast<uInt>(dictionary.size())) ==
        Z_OK);
}
SpdyDeflater::~SpdyDeflater() { deflateEnd(&state_->z); }

std::string SpdyDeflater::Block(std::string_view plain) {
  z_stream& z = state_->z;
  z.next_in = const_cast<Bytef*>(Bytes(plain));
  z.avail_in = static_cast<uInt>(plain.size());
  std::string out;
  do {
    const size_t before = out.size();
    out.resize(before + kInflateStep);
    z.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    z.avail_out = kInflateStep;
    deflate(&z, Z_SYNC_FLUSH);
    out.resize(out.size() - z.avail_out);
  } while (z.avail_out == 0);
  return out;
}

void SpdyDecoder::Feed(std::string_view bytes) {
  if (at_ == in_.size() || at_ > kCompactAfter) {
    in_.erase(0, at_);
    at_ = 0;
  }
  in_.append(bytes);
}

Result<std::optional<SpdyFrame>> SpdyDecoder::Next() {
  while (true) {
    if (in_data_) return DataPiece();
    const std::string_view rest = std::string_view(in_).substr(at_);
    if (rest.size() < kHeadSize) return std::nullopt;
    if ((Number(rest, 0) & 0x80000000U) != 0) {
      const size_t before = at_;
      auto frame = Control();
      // A frame that is skipped leaves the place changed.
      if (!frame || *frame || at_ == before) return frame;
      continue;
    }
    in_data_ = true;
    data_id_ = Number(rest, 0);
    data_fin_ = (static_cast<uint8_t>(rest[4]) & kFlagFin) != 0;
    data_left_ = Number(rest, 5, 3);
    at_ += kHeadSize;
    if (data_id_ == 0) return Fail(Broken("data of stream 0"));
  }
}

std::optional<SpdyFrame> SpdyDecoder::DataPiece() {
  const std::string_view piece = std::string_view(in_).substr(at_, data_left_);
  if (piece.empty() && data_left_ > 0) return std::nullopt;
  at_ += piece.size();
  data_left_ -= piece.size();
  in_data_ = data_left_ > 0;
  SpdyFrame frame;
  frame.id = data_id_;
  frame.fin = data_fin_ && !in_data_;
  frame.data = piece;
  return frame;
}

Result<std::optional<SpdyFrame>> SpdyDecoder::Control() {
  const std::string_view rest = std::string_view(in_).substr(at_);
  const uint32_t word = Number(rest, 0);
  const size_t size = Number(rest, 5, 3);
  if ((word >> 16 & 0x7fff) != kVersion) return Fail(Broken("a frame is not of version 3"));
  if (size > kMaxSpdyControl) return Fail(Broken("a control frame is too big"));
  if (rest.size() < kHeadSize + size) return std::nullopt;
  at_ += kHeadSize + size;
  const auto type = static_cast<SpdyType>(word & 0xffff);
  if (FixedSize(type) == 0) return std::nullopt;
  ASSIGN_OR_RETURN(SpdyFrame frame,
                   Read(type, static_cast<uint8_t>(rest[4]), rest.substr(kHeadSize, size)));
  return frame;
}

Result<SpdyFrame> SpdyDecoder::Read(SpdyType type, uint8_t flags, std::string_view payload) {
  const size_t fixed = FixedSize(type);
  if (HasHeaders(type) ? payload.size() < fixed : payload.size() != fixed) {
    return Fail(Broken("a control frame has the wrong size"));
  }
  SpdyFrame frame;
  frame.type = type;
  frame.id = Number(payload, 0);
  if (type != SpdyType::kPing) frame.id &= 0x7fffffffU;
  if (type == SpdyType::kRstStream || type == SpdyType::kGoAway) frame.status = Number(payload, 4);
  if (HasHeaders(type)) {
    frame.fin = (flags & kFlagFin) != 0;
    ASSIGN_OR_RETURN(const std::string block, inflater_.Block(payload.substr(fixed)));
    ASSIGN_OR_RETURN(frame.headers, ReadHeaders(block));
  }
  return frame;
}

std::string SpdyEncoder::SynStream(uint32_t id, const Headers& headers, bool fin) {
  std::string payload = Numbers({id, 0});
  payload.append(2, '\0');  // priority and slot
  payload += deflater_.Block(WriteHeaders(headers));
  return ControlFrame(SpdyType::kSynStream, fin ? kFlagFin : 0, payload);
}

std::string SpdyEncoder::SynReply(uint32_t id, const Headers& headers) {
  return ControlFrame(SpdyType::kSynReply, 0,
                      Numbers({id}) + deflater_.Block(WriteHeaders(headers)));
}

std::string SpdyEncoder::Data(uint32_t id, std::string_view bytes, bool fin) {
  CHECK(bytes.size() < 1 << 24);
  std::string out;
  out.reserve(kHeadSize + bytes.size());
  PutNumber(out, id);
  PutNumber(out, (fin ? 1U << 24 : 0U) | static_cast<uint32_t>(bytes.size()));
  out += bytes;
  return out;
}

std::string SpdyEncoder::RstStream(uint32_t id, SpdyReset why) {
  return ControlFrame(SpdyType::kRstStream, 0, Numbers({id, static_cast<uint32_t>(why)}));
}

std::string SpdyEncoder::Ping(uint32_t id) {
  return ControlFrame(SpdyType::kPing, 0, Numbers({id}));
}

std::string SpdyEncoder::GoAway(uint32_t last_good, bool protocol_error) {
  return ControlFrame(SpdyType::kGoAway, 0, Numbers({last_good, protocol_error ? 1U : 0U}));
}

}  // namespace sextant::net
