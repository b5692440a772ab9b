// Schema tables: what a field is, said once (DESIGN, law 5).
//
// The tables of built-in kinds are generated at build time from src/api/proto/*.proto; those of
// custom resources are made at run time from their structural schema. Both codecs, OpenAPI,
// patches, declared defaults, checks of unknown and immutable fields and the typed views read the
// same tables: none of them knows a kind by name.
//
//   const Resource* pods = Registry::Builtin().Find({"", "v1"}, "pods");
//   const Field* f = pods->message->FindField("spec");
//
// Ownership: built-in tables live for the whole program; custom ones are held by shared_ptr in the
// registry snapshot that knows them. Threads: tables are immutable; read from anywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sextant::api {

// How one value is written. Repetition and maps are said by Field::shape.
enum class Type : uint8_t {
  kBool,
  kInt32,
  kInt64,
  kUint32,
  kDouble,
  kString,
  kBytes,         // JSON: base64
  kMessage,       // Field::message says which
  kQuantity,      // resource.Quantity: JSON string (or number on input), protobuf message{string}
  kTime,          // metav1.Time: JSON RFC 3339 in seconds, protobuf message{seconds,nanos}
  kMicroTime,     // metav1.MicroTime: JSON RFC 3339 with six decimals
  kDuration,      // metav1.Duration: JSON string "1m0s", protobuf message{int64 ns}
  kIntOrString,   // JSON number or string
  kRawExtension,  // any JSON object; protobuf message{bytes raw}
  kFieldsV1,      // managedFields' set: any JSON object; protobuf message{bytes Raw}
  kAny,           // any JSON value: table cells, JSON-Schema defaults, preserved unknown fields
  kStringList,  // JSON: list of strings; protobuf: message{repeated string items = 1} (ExtraValue)
};

enum class Shape : uint8_t { kSingle, kList, kMap };  // maps always have string keys

// Which zero values JSON carries. Go's encoding decides; types.go says which rule a field has.
enum class Presence : uint8_t {
  kOmitEmpty,  // plain value with omitempty: zero, "", [] and {} are not written
  kPointer,    // pointer (or omitzero): absent or present, zero is written when present
  kAlways,     // no omitempty: always written: 0, "", null for lists/maps/pointers, {} for messages
};

enum class ListType : uint8_t { kUnset, kAtomic, kSet, kMap };

struct Message;
class FieldIndex;

struct Field {
  std::string_view name;     // JSON name
  std::string_view go_name;  // Go's struct field name, for messages that Go's decoder prints
  // Go's type without a leading pointer, as reflect prints it ("[]v1.Container",
  // "v1.RestartPolicy"); empty: derived from type and shape.
  std::string_view go_type;
  uint32_t number = 0;  // protobuf; 0 where protobuf does not carry it
  Type type = Type::kString;
  Shape shape = Shape::kSingle;
  Presence presence = Presence::kOmitEmpty;
  bool pointer = false;  // a Go pointer (also with kAlways)
  // Inlined in JSON, nested in protobuf (Go: embedded struct with a protobuf tag), for example
  // Volume.volumeSource. Message::fields lists the inlined message's own fields after it as well;
  // `via` points to the inlining field then.
  bool inlined = false;
  const Field* via = nullptr;
  const Message* message = nullptr;  // element type when type == kMessage
  bool required = false;             // OpenAPI "required"
  bool immutable = false;
  // JSON text of the declared default, "" for none. Besides, OpenAPI prints the zero value as
  // default of single booleans, numbers, strings and messages that are kAlways and no pointer.
  std::string_view default_json;
  ListType list_type = ListType::kUnset;
  std::span<const std::string_view> list_map_keys;
  bool map_atomic = false;           // +mapType=atomic / +structType=atomic
  bool map_granular = false;         // +mapType=granular / +structType=granular
  std::string_view patch_merge_key;  // strategic merge patch
  bool patch_merge = false;          // patchStrategy contains merge
  bool patch_replace = false;
  bool patch_retain_keys = false;
  std::span<const std::string_view> enum_values;
  std::string_view format;       // OpenAPI format ("int32", "date-time", "byte")
  std::string_view description;  // our own sentence, may be empty
};

// Types whose Go form is a struct: omitempty never drops them.
bool IsStruct(const Field& field);
// `presence`, with what Go does to structs and pointers.
Presence EffectivePresence(const Field& field);

struct Message {
  std::string_view name;          // "io.k8s.api.core.v1.PodSpec": the OpenAPI model name
  std::string_view go_name;       // "v1.PodSpec": as Go's decoder prints it
  std::span<const Field> fields;  // in Go's order, inlined ones expanded (see Field::via)
  std::string_view description;
  std::string_view unions;        // JSON text of OpenAPI's x-kubernetes-unions, "" for none
  bool atomic = false;            // structType=atomic
  bool preserve_unknown = false;  // custom resources: x-kubernetes-preserve-unknown-fields
  bool top = false;               // has kind and apiVersion (its first two fields, without numbers)
  bool json_only = false;         // has no protobuf form, itself or something below it
  const FieldIndex* index = nullptr;  // makes the lookups below fast; without it they scan
  // Made at run time from a custom resource's schema: the table may go away before documents do
  // (they copy its names), members stand sorted by name, as Go prints unstructured objects, and
  // decoding never refuses a value (validation by the structural schema does).
  bool custom = false;

  // By JSON name; nullptr if there is none. Finds expanded inlined fields, not the inlining field.
  const Field* FindField(std::string_view json_name) const;
  const Field* FindNumber(uint32_t number) const;  // by protobuf number: direct or inlining fields
};

// The lookup tables of one message, over its final `fields`. Built-in messages have theirs; whoever
// makes a message at run time makes one and keeps it as long as the message.
class FieldIndex {
 public:
  explicit FieldIndex(std::span<const Field> fields);
  const Field* ByName(std::string_view json_name) const;
  const Field* ByNumber(uint32_t number) const;
  // Protobuf fields in ascending number: position in the fields plus one, 0 where there is none.
  std::span<const uint16_t> Numbers() const {
    return std::span(entries_).subspan(size_t{slot_mask_} + 1);
  }
  // Positions of the fields that JSON always shows (EffectivePresence is kAlways), ascending.
  std::span<const uint16_t> Always() const { return always_; }

 private:
  std::span<const Field> fields_;
  // A power of two of slots with open addressing, then one entry per protobuf number; an entry is
  // the position in fields_ plus one.
  std::vector<uint16_t> entries_;
  std::vector<uint16_t> always_;
  uint32_t slot_mask_ = 0;
};

struct GroupVersion {
  std::string_view group;  // "" for core
  std::string_view version;
  // Takes an apiVersion apart at its first slash; both parts point into the text.
  static GroupVersion Of(std::string_view api_version);
  std::string ToString() const;  // "v1", "apps/v1"
  bool operator==(const GroupVersion&) const = default;
};

struct GroupVersionKind {
  std::string_view group;
  std::string_view version;
  std::string_view kind;
  GroupVersion group_version() const { return {group, version}; }
  bool operator==(const GroupVersionKind&) const = default;
};

// What the API server says of a kind that it does not know, and of one where another is wanted.
std::string NoKindRegistered(const GroupVersionKind& gvk);
std::string UnknownConversion(const GroupVersionKind& from, const GroupVersionKind& to);

// One subresource of a resource: "status", "scale", "log", ... with the kind that it speaks.
struct Subresource {
  std::string_view name;
  GroupVersionKind kind;             // request and response kind
  const Message* message = nullptr;  // of `kind`
  std::span<const std::string_view> verbs;
};

struct Resource {
  GroupVersion group_version;
  std::string_view plural;     // "pods"
  std::string_view singular;   // "pod"
  std::string_view kind;       // "Pod"
  std::string_view list_kind;  // "PodList"
  std::span<const std::string_view> short_names;
  std::span<const std::string_view> categories;
  std::span<const std::string_view> verbs;  // as discovery prints them, sorted
  bool namespaced = true;
  // Not stored: the request itself is the question (SelfSubjectAccessReview, TokenReview, ...).
  bool virtual_review = false;
  const Message* message = nullptr;
  std::span<const Subresource> subresources;
  // Field selectors other than metadata.name and metadata.namespace, as JSON paths
  // ("spec.nodeName", "status.phase").
  std::span<const std::string_view> selectable_fields;
  std::string_view storage_version_hash;  // discovery's storageVersionHash
  std::string_view storage_name;          // see StorageName, if it is not the usual one

  const Subresource* FindSubresource(std::string_view name) const;
  bool HasVerb(std::string_view verb) const;
  // Where the objects are kept: "pods", "deployments.apps". Kinds served in two groups share one
  // ("events").
  std::string StorageName() const;
};

// The kinds that one lab knows. The built-in registry is a program-wide constant; a server makes a
// new registry snapshot when a custom resource comes or goes.
class Registry {
 public:
  static const Registry& Builtin();

  virtual ~Registry() = default;
  virtual std::span<const Resource* const> resources() const = 0;  // discovery order
  virtual const Resource* Find(GroupVersion gv, std::string_view plural) const = 0;
  virtual const Resource* FindKind(GroupVersion gv, std::string_view kind) const = 0;
  // Any message by its OpenAPI name, nullptr if unknown: metav1.Status, DeleteOptions, Scale, ...
  virtual const Message* FindMessage(std::string_view name) const = 0;
  // The message of an apiVersion/kind pair that is not a resource (DeleteOptions, PodList, Status).
  virtual const Message* FindKindMessage(GroupVersion gv, std::string_view kind) const = 0;
};

}  // namespace sextant::api
