#include "api/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/quote.h"

namespace sextant::api {
namespace {

// Mixes the length and the first and last bytes. Field names of one message differ there; those few
// that do not share a slot's chain.
uint32_t KeyHash(std::string_view key) {
  uint64_t head = 0;
  uint64_t tail = 0;
  if (key.size() >= 8) {
    std::memcpy(&head, key.data(), 8);
    std::memcpy(&tail, key.data() + key.size() - 8, 8);
  } else {
    std::memcpy(&head, key.data(), key.size());
  }
  uint64_t h = (head ^ std::rotl(tail, 29) ^ key.size()) * 0x9e3779b97f4a7c15U;
  h ^= h >> 32;
  return static_cast<uint32_t>(h * 0x85ebca6bU >> 7);
}

const Field* ScanName(std::span<const Field> fields, std::string_view name) {
  for (const Field& f : fields) {
    if (!f.inlined && f.name == name) return &f;
  }
  return nullptr;
}

const Field* ScanNumber(std::span<const Field> fields, uint32_t number) {
  if (number == 0) return nullptr;
  for (const Field& f : fields) {
    if (f.via == nullptr && f.number == number) return &f;
  }
  return nullptr;
}

// Numbers above this are looked up by scanning; Kubernetes uses none.
constexpr uint32_t kNumberMaxIndexed = 255;

}  // namespace

bool IsStruct(const Field& field) {
  if (field.shape != Shape::kSingle || field.pointer) return false;
  switch (field.type) {
    case Type::kMessage:
    case Type::kQuantity:
    case Type::kTime:
    case Type::kMicroTime:
    case Type::kDuration:
    case Type::kIntOrString:
    case Type::kRawExtension:
    case Type::kFieldsV1:
      return true;
    default:
      return false;
  }
}

Presence EffectivePresence(const Field& field) {
  if (field.presence == Presence::kOmitEmpty) {
    if (IsStruct(field)) return Presence::kAlways;
    if (field.pointer) return Presence::kPointer;
  }
  return field.presence;
}

FieldIndex::FieldIndex(std::span<const Field> fields) : fields_(fields) {
  const size_t slots = std::bit_ceil(std::max<size_t>(fields.size() * 2, 2));
  uint32_t number_max = 0;
  for (const Field& f : fields) {
    if (f.number <= kNumberMaxIndexed) number_max = std::max(number_max, f.number);
  }
  slot_mask_ = static_cast<uint32_t>(slots - 1);
  entries_.resize(slots + number_max + 1);
  for (size_t i = 0; i < fields.size(); ++i) {
    const Field& f = fields[i];
    const auto entry = static_cast<uint16_t>(i + 1);
    if (f.via == nullptr && f.number > 0 && f.number <= kNumberMaxIndexed) {
      entries_[slots + f.number] = entry;
    }
    if (f.inlined) continue;
    if (EffectivePresence(f) == Presence::kAlways) always_.push_back(static_cast<uint16_t>(i));
    uint32_t at = KeyHash(f.name) & slot_mask_;
    while (entries_[at] != 0) at = (at + 1) & slot_mask_;
    entries_[at] = entry;
  }
}

const Field* FieldIndex::ByName(std::string_view name) const {
  for (uint32_t at = KeyHash(name) & slot_mask_; entries_[at] != 0; at = (at + 1) & slot_mask_) {
    const Field& f = fields_[entries_[at] - 1U];
    if (f.name == name) return &f;
  }
  return nullptr;
}

const Field* FieldIndex::ByNumber(uint32_t number) const {
  const size_t at = size_t{slot_mask_} + 1 + number;
  if (number > kNumberMaxIndexed) return ScanNumber(fields_, number);
  if (at >= entries_.size() || entries_[at] == 0) return nullptr;
  return &fields_[entries_[at] - 1U];
}

const Field* Message::FindField(std::string_view json_name) const {
  return index != nullptr ? index->ByName(json_name) : ScanName(fields, json_name);
}

const Field* Message::FindNumber(uint32_t number) const {
  return index != nullptr ? index->ByNumber(number) : ScanNumber(fields, number);
}

GroupVersion GroupVersion::Of(std::string_view api_version) {
  const size_t slash = api_version.find('/');
  if (slash == std::string_view::npos) return {"", api_version};
  return {api_version.substr(0, slash), api_version.substr(slash + 1)};
}

std::string GroupVersion::ToString() const {
  std::string out(group);
  if (!out.empty()) out += '/';
  return out += version;
}

std::string NoKindRegistered(const GroupVersionKind& gvk) {
  return fmt::format(
      "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
      Quote(gvk.kind), Quote(gvk.group_version().ToString()));
}

std::string UnknownConversion(const GroupVersionKind& from, const GroupVersionKind& to) {
  // The package of Kubernetes' internal types: core.Pod, apps.Deployment.
  const std::string_view package =
      to.group.empty() ? std::string_view("core") : to.group.substr(0, to.group.find('.'));
  return fmt::format("converting ({}.{}) to ({}.{}): unknown conversion", from.version, from.kind,
                     package, to.kind);
}

std::string Resource::StorageName() const {
  if (!storage_name.empty()) return std::string(storage_name);
  return group_version.group.empty() ? std::string(plural)
                                     : fmt::format("{}.{}", plural, group_version.group);
}

const Subresource* Resource::FindSubresource(std::string_view name) const {
  for (const Subresource& s : subresources) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

bool Resource::HasVerb(std::string_view verb) const {
  return std::ranges::find(verbs, verb) != verbs.end();
}

}  // namespace sextant::api
