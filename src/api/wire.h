// Protobuf's wire format: reading field by field, writing from the end to the front (so that every
// length is known when it is written). Internal to the protobuf codec.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace sextant::api {

enum class Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

class WireReader {
 public:
  explicit WireReader(std::string_view data) : data_(data) {}

  bool AtEnd() const { return data_.empty(); }
  bool Varint(uint64_t& v) {
    v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (data_.empty()) return false;
      auto byte = static_cast<uint8_t>(data_.front());
      data_.remove_prefix(1);
      v |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  // The next field: its value in `number` (varint, fixed) or `bytes`.
  bool Next(uint32_t& field, Wire& wire, uint64_t& number, std::string_view& bytes) {
    uint64_t tag;
    if (!Varint(tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX) return false;
    field = static_cast<uint32_t>(tag >> 3);
    wire = static_cast<Wire>(tag & 7);
    switch (wire) {
      case Wire::kVarint:
        return Varint(number);
      case Wire::kFixed64:
        return Take(8, bytes) && Fixed(bytes, number);
      case Wire::kFixed32:
        return Take(4, bytes) && Fixed(bytes, number);
      case Wire::kBytes:
        return Varint(number) && Take(number, bytes);
    }
    return false;  // groups, which nobody writes
  }

 private:
  bool Take(uint64_t n, std::string_view& bytes) {
    if (n > data_.size()) return false;
    bytes = data_.substr(0, n);
    data_.remove_prefix(n);
    return true;
  }
  static bool Fixed(std::string_view bytes, uint64_t& v) {
    v = 0;
    for (size_t i = bytes.size(); i-- > 0;) v = v << 8 | static_cast<uint8_t>(bytes[i]);
    return true;
  }

  std::string_view data_;
};

class WireWriter {
 public:
  size_t size() const { return buffer_.size() - at_; }
  std::string_view text() const { return {buffer_.data() + at_, size()}; }
  void Clear() {
    constexpr size_t kKeep = size_t{4} << 20;
    if (buffer_.size() > kKeep) buffer_ = {};
    at_ = buffer_.size();
  }

  void Raw(std::string_view s) {
    Room(s.size());
    at_ -= s.size();
    if (!s.empty()) std::memcpy(buffer_.data() + at_, s.data(), s.size());
  }
  void Varint(uint64_t v) {
    if (v < 0x80) {
      Room(1);
      buffer_.data()[--at_] = static_cast<char>(v);
      return;
    }
    char bytes[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7) bytes[n++] = static_cast<char>(v | 0x80);
    bytes[n++] = static_cast<char>(v);
    Raw({bytes, n});
  }
  void Tag(uint32_t field, Wire wire) { Varint(uint64_t{field} << 3 | static_cast<uint8_t>(wire)); }
  void Number(uint32_t field, uint64_t v) {
    Varint(v);
    Tag(field, Wire::kVarint);
  }
  void Bytes(uint32_t field, std::string_view s) {
    Raw(s);
    Header(field, s.size());
  }
  // What stands in front of `n` bytes that were just written.
  void Header(uint32_t field, size_t n) {
    Varint(n);
    Tag(field, Wire::kBytes);
  }
  void Double(uint32_t field, double v) {
    auto bits = std::bit_cast<uint64_t>(v);
    char bytes[8];
    for (char& b : bytes) {
      b = static_cast<char>(bits);
      bits >>= 8;
    }
    Raw({bytes, 8});
    Tag(field, Wire::kFixed64);
  }

 private:
  void Room(size_t n) {
    if (n > at_) [[unlikely]]
      Grow(n);
  }
  [[gnu::noinline]] void Grow(size_t n) {
    constexpr size_t kFirst = 4096;
    size_t used = size();
    std::vector<char> larger((used + n) * 2 + kFirst);
    if (used != 0) std::memcpy(larger.data() + larger.size() - used, buffer_.data() + at_, used);
    at_ = larger.size() - used;
    buffer_ = std::move(larger);
  }

  std::vector<char> buffer_;
  size_t at_ = 0;  // the first byte written
};

}  // namespace sextant::api
