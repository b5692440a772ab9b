// The encoding half of protobuf.h.
#include <fmt/format.h>

#include "api/canonical.h"
#include "api/protobuf.h"
#include "api/quantity.h"
#include "api/time_value.h"
#include "api/wire.h"
#include "base/base64.h"
#include "base/check.h"
#include "base/clock.h"

namespace sextant::api {
namespace {

// Writes from the last byte to the first; everything is done in reverse order.
class Encoder {
 public:
  explicit Encoder(WireWriter& out) : out_(out) {}

  void Object(const Message& message, Value object) {
    const FieldIndex* index = message.index;
    CHECK(index != nullptr);
    // The value of each field; members come in the order of the fields.
    size_t n = message.fields.size();
    constexpr size_t kInline = 64;
    const Node* small[kInline];
    std::vector<const Node*> large;
    const Node** values = small;
    if (n > kInline) {
      large.resize(n);
      values = large.data();
    } else {
      std::fill_n(small, n, nullptr);
    }
    int hint = 0;
    for (MemberView m : object.members()) {
      int at = IndexOfField(message, m.key, hint);
      if (at < 0) continue;
      hint = at + 1;
      values[at] = m.value.node();
    }
    std::span<const uint16_t> numbers = index->Numbers();
    for (size_t i = numbers.size(); i-- > 0;) {
      if (numbers[i] == 0) continue;
      const Field& f = message.fields[numbers[i] - 1u];
      if (f.inlined) {
        size_t before = out_.size();
        Object(*f.message, object);
        out_.Header(f.number, out_.size() - before);
      } else {
        Member(f, Value(values[numbers[i] - 1u]));
      }
    }
  }

 private:
  void Member(const Field& f, Value v) {
    if (f.shape == Shape::kList) {
      for (size_t i = v.size(); i-- > 0;) Single(f, f.number, v.at(i));
      return;
    }
    if (f.shape == Shape::kMap) {
      if (!v.IsMap()) return;
      const Node& map = *v.node();
      for (uint32_t i = map.size; i-- > 0;) {
        size_t before = out_.size();
        Single(f, 2, Value(&map.members[i].value));
        out_.Bytes(1, map.members[i].name());
        out_.Header(f.number, out_.size() - before);
      }
      return;
    }
    // Bytes and v1.Verbs are slices in Go: nil ones are left out (meta/v1 generated.pb.go).
    bool may_lack = f.pointer || f.type == Type::kBytes || f.type == Type::kStringList;
    if (may_lack && !v) return;
    Single(f, f.number, v);
  }

  void Single(const Field& f, uint32_t number, Value v) {
    switch (f.type) {
      case Type::kBool:
        return out_.Number(number, v.AsBool() ? 1 : 0);
      case Type::kInt32:
      case Type::kInt64:
      case Type::kUint32:
        return out_.Number(number, static_cast<uint64_t>(v.AsInt()));
      case Type::kDouble:
        return out_.Double(number, v.AsDouble());
      case Type::kString:
        return out_.Bytes(number, v.AsString());
      case Type::kBytes:
        return out_.Bytes(number, Base64Decode(v.AsString()).value_or(""));
      default: {
        size_t before = out_.size();
        Nested(f, v);
        return out_.Header(number, out_.size() - before);
      }
    }
  }

  // The content of what is a message in protobuf.
  void Nested(const Field& f, Value v) {
    switch (f.type) {
      case Type::kMessage:
        return Object(*f.message, v);
      case Type::kQuantity: {
        std::string number = v.IsInt() ? std::to_string(v.AsInt()) : "";
        std::string_view text = v.AsString(number.empty() ? std::string_view("0") : number);
        return out_.Bytes(1, text);
      }
      case Type::kTime:
      case Type::kMicroTime:
        return Time(v, f.type == Type::kTime ? TimeKind::kSeconds : TimeKind::kMicro);
      case Type::kDuration: {
        auto d = ParseDuration(v.AsString("0s"));
        return out_.Number(1, static_cast<uint64_t>(d ? d->count() : 0));
      }
      case Type::kIntOrString:
        out_.Bytes(3, v.AsString());
        out_.Number(2, static_cast<uint64_t>(v.AsInt()));
        return out_.Number(1, v.IsString() ? 1 : 0);
      case Type::kStringList:
        for (size_t i = v.size(); i-- > 0;) out_.Bytes(1, v.at(i).AsString());
        return;
      case Type::kRawExtension:
      case Type::kFieldsV1:
      case Type::kAny:
        if (v) out_.Bytes(1, ToJson(v, {.escape_html = false}));
        return;
      default:
        return;
    }
  }

  void Time(Value v, TimeKind kind) {
    if (!v) return;
    auto t = ParseInstant(v.AsString(), kind);
    if (!t || *t == kZeroInstant) return;
    out_.Number(2, static_cast<uint64_t>(t->nanos));
    out_.Number(1, static_cast<uint64_t>(t->seconds));
  }

  WireWriter& out_;
};

// contentEncoding and contentType, empty but written.
constexpr std::string_view kProtobufTail("\x1a\x00\x22\x00", 4);

WireWriter& Buffer() {
  thread_local WireWriter writer;
  writer.Clear();
  return writer;
}

// Closes the envelope around what the writer holds.
void Envelope(const TypeMeta& meta, WireWriter& w) {
  size_t raw = w.size();
  // Behind the object come the two empty texts; the writer goes backwards, so they are there.
  w.Header(2, raw - kProtobufTail.size());
  size_t before = w.size();
  w.Bytes(2, meta.kind);
  w.Bytes(1, meta.api_version);
  w.Header(1, w.size() - before);
  w.Raw(kProtobufMagic);
}

TypeMeta MetaOf(Value object) {
  return {std::string(object["apiVersion"].AsString()), std::string(object["kind"].AsString())};
}

}  // namespace

void EncodeProtobufRaw(Value object, const Message& message, std::string& out) {
  WireWriter& w = Buffer();
  Encoder(w).Object(message, object);
  out.append(w.text());
}

void EncodeProtobuf(Value object, const Message& message, std::string& out) {
  WireWriter& w = Buffer();
  w.Raw(kProtobufTail);
  Encoder(w).Object(message, object);
  Envelope(MetaOf(object), w);
  out.append(w.text());
}

void EncodeProtobufList(const TypeMeta& meta, const Message& list, Value metadata,
                        std::span<const Object> items, std::string& out) {
  const Field* items_field = list.FindField("items");
  const Field* meta_field = list.FindField("metadata");
  CHECK(items_field != nullptr && items_field->message != nullptr);
  CHECK(meta_field != nullptr && meta_field->number < items_field->number);
  WireWriter& w = Buffer();
  w.Raw(kProtobufTail);
  Encoder encoder(w);
  for (size_t i = items.size(); i-- > 0;) {
    size_t before = w.size();
    encoder.Object(*items_field->message, items[i].root());
    w.Header(items_field->number, w.size() - before);
  }
  size_t before = w.size();
  encoder.Object(*meta_field->message, metadata);
  w.Header(meta_field->number, w.size() - before);
  Envelope(meta, w);
  out.append(w.text());
}

void AppendWatchFrame(std::string_view type, std::string_view body, std::string& out) {
  WireWriter& w = Buffer();
  w.Bytes(1, body);
  w.Header(2, w.size());
  w.Bytes(1, type);
  size_t n = w.size();
  for (int shift : {24, 16, 8, 0}) out += static_cast<char>(n >> shift);
  out.append(w.text());
}

}  // namespace sextant::api
