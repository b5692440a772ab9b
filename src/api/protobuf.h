// application/vnd.kubernetes.protobuf: driven by the schema tables, byte for byte what gogo's
// generated marshalers write.
//
//   ASSIGN_OR_RETURN(ProtobufEnvelope e, OpenProtobuf(body));
//   ASSIGN_OR_RETURN(Object pod, DecodeProtobuf(e.raw, *message, e.meta));
//   std::string out;
//   EncodeProtobuf(pod.root(), *message, out);
//
// The body is "k8s\0" and a runtime.Unknown {typeMeta, raw, contentEncoding, contentType} around
// the object. Fields stand in ascending number, maps by key; plain scalars and structs are written
// even when zero, pointers when present. Decoding gives canonical form (canonical.h); numbers that
// the schema does not know are skipped. Messages with json_only cannot be written. Errors: 400.
// Thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/document.h"
#include "api/json.h"
#include "api/schema.h"
#include "base/status.h"

namespace sextant::api {

inline constexpr std::string_view kProtobufMagic("k8s\0", 4);

struct ProtobufEnvelope {
  TypeMeta meta;
  std::string_view raw;  // into the body
};
Result<ProtobufEnvelope> OpenProtobuf(std::string_view body);

// The object in `raw`; kind and apiVersion, which protobuf keeps outside, from `meta`.
Result<Object> DecodeProtobuf(std::string_view raw, const Message& message, const TypeMeta& meta);

// Appends the whole body. The kind is the one that the object names.
void EncodeProtobuf(Value object, const Message& message, std::string& out);
// Appends the object alone, as it lies in an envelope.
void EncodeProtobufRaw(Value object, const Message& message, std::string& out);
// A list of stored objects, without making the list first. `metadata`: a ListMeta, may be absent.
void EncodeProtobufList(const TypeMeta& meta, const Message& list, Value metadata,
                        std::span<const Object> items, std::string& out);

// One event of a watch stream: four bytes of length, then a WatchEvent whose object is `body` (an
// object with its envelope).
void AppendWatchFrame(std::string_view type, std::string_view body, std::string& out);
struct WatchFrame {
  std::string_view type;
  std::string_view body;
};
// From a frame's bytes behind the length.
Result<WatchFrame> OpenWatchFrame(std::string_view frame);

}  // namespace sextant::api
