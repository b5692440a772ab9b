// The rows of the generated tables (build/gen/api/tables.cc): plain numbers, no pointers, so that
// they need no relocation and stay on disk until Registry::Builtin() reads them once.
#pragma once

#include <cstdint>
#include <span>

namespace sextant::api::gen {

// A string of kText: offset in the upper 20 bits, length in the lower 12. 0 is the empty string.
using Text = uint32_t;
inline constexpr int kTextLengthBits = 12;
inline constexpr uint32_t kTextLengthMax = (1U << kTextLengthBits) - 1;
inline constexpr uint32_t kTextBytesMax = 1U << (32 - kTextLengthBits);

inline constexpr uint16_t kNoMessage = 0xffff;

// A run of kStrings.
struct Strings {
  uint16_t first = 0;
  uint16_t count = 0;
};

enum FieldFlag : uint16_t {
  kPointerFlag = 1 << 0,
  kInlineFlag = 1 << 1,
  kRequiredFlag = 1 << 2,
  kImmutableFlag = 1 << 3,
  kMapAtomicFlag = 1 << 4,
  kPatchMergeFlag = 1 << 5,
  kPatchReplaceFlag = 1 << 6,
  kPatchRetainKeysFlag = 1 << 7,
  kMapGranularFlag = 1 << 8,
};

struct FieldRow {
  Text name = 0, go_name = 0, go_type = 0, default_json = 0, merge_key = 0, description = 0;
  Strings list_map_keys, enum_values;
  uint16_t number = 0;
  uint16_t message = kNoMessage;
  uint16_t flags = 0;
  uint8_t type = 0, shape = 0, presence = 0, list_type = 0;
};

enum MessageFlag : uint8_t { kTopFlag = 1 << 0, kJsonOnlyFlag = 1 << 1, kAtomicFlag = 1 << 2 };

struct MessageRow {
  Text name = 0, go_name = 0, description = 0, unions = 0;
  Text group = 0, version = 0, kind = 0;  // kind is empty for what is no kind
  uint16_t first_field = 0;
  uint16_t field_count = 0;
  uint8_t flags = 0;
};

struct SubresourceRow {
  Text name = 0, group = 0, version = 0, kind = 0;
  uint16_t message = kNoMessage;
  Strings verbs;
};

struct ResourceRow {
  Text group = 0, version = 0, plural = 0, singular = 0, kind = 0, list_kind = 0, hash = 0,
       storage = 0;
  Strings short_names, categories, verbs, selectable;
  uint16_t message = kNoMessage;
  uint16_t first_subresource = 0;
  uint16_t subresource_count = 0;
  bool namespaced = true;
  bool review = false;
};

extern const char* const kText;
extern const std::span<const Text> kStrings;
extern const std::span<const FieldRow> kFields;  // without the expansion of inlined messages
extern const std::span<const MessageRow> kMessages;
extern const std::span<const SubresourceRow> kSubresources;
extern const std::span<const ResourceRow> kResources;

}  // namespace sextant::api::gen
