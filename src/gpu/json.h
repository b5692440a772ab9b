// A small JSON reader and writer for the two texts of this room: the model catalogue (embedded) and
// an inventory (the file that a container's nvidia-smi reads).
//
//   Result<Json> doc = Json::Parse(text);
//   std::string name = doc->At("name").Str();
//
// Why not simdjson: this code is linked into the static nvidia-smi that goes into other people's
// containers and stays small. Objects keep the order of the text. Reading a member that is not
// there, or a value of another type, gives an empty value: the loaders check what they need.
// Limits: kMaxDepth levels and kMaxBytes of text; beyond them Parse fails. Plain values.
// Source of the rule: RFC 8259.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace sextant::gpu {

class Json {
 public:
  enum class Type { kNull, kBool, kNumber, kString, kArray, kObject };
  static constexpr int kMaxDepth = 16;
  static constexpr size_t kMaxBytes = 4u << 20;

  static Result<Json> Parse(std::string_view text);

  Type type() const { return type_; }
  bool IsNull() const { return type_ == Type::kNull; }
  const Json& At(std::string_view key) const;  // a null value when absent
  const std::vector<Json>& Items() const { return items_; }
  const std::vector<std::string>& Keys() const { return keys_; }  // of an object, beside Items()
  std::string Str(std::string_view otherwise = "") const;
  int64_t Int(int64_t otherwise = 0) const;
  double Num(double otherwise = 0) const;
  bool Bool(bool otherwise = false) const;
  std::vector<int> Ints() const;
  std::vector<std::string> Strings() const;

 private:
  friend class JsonParser;
  Type type_ = Type::kNull;
  bool bool_ = false;
  double number_ = 0;
  std::string string_;
  std::vector<std::string> keys_;
  std::vector<Json> items_;
};

// Writes one compact JSON text. Begin/End must pair; Key before each member of an object.
class JsonWriter {
 public:
  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }
  JsonWriter& Key(std::string_view key);
  JsonWriter& Str(std::string_view value);
  JsonWriter& Int(int64_t value);
  JsonWriter& Bool(bool value);
  std::string Take() { return std::move(out_); }

 private:
  JsonWriter& Open(char c);
  JsonWriter& Close(char c);
  void Comma();
  void Quote(std::string_view s);
  std::string out_;
  bool first_ = true;
};

}  // namespace sextant::gpu
