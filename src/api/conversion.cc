#include "api/conversion.h"

#include <array>
#include <span>
#include <utility>

#include "api/custom_kind.h"

namespace sextant::api {
namespace {

struct Rename {
  std::string_view stored;
  std::string_view served;
};

// Stored in the first version's words, served in the second's; other fields keep their names,
// unless the kind has functions of its own.
struct Conversion {
  std::string_view plural;
  std::string_view served_api_version;
  std::string_view stored_api_version;
  std::span<const Rename> renames;
  Object (*to_stored)(Value object) = nullptr;
  Object (*from_stored)(const Object& object) = nullptr;
  void (*keep)(Mut object, Value old, Kept kept) = nullptr;
};

constexpr std::array<Rename, 8> kEventRenames = {{
    {"involvedObject", "regarding"},
    {"message", "note"},
    {"reportingComponent", "reportingController"},
    {"source", "deprecatedSource"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"count", "deprecatedCount"},
    {"reportingInstance", "reportingInstance"},
}};
constexpr std::array<Conversion, 2> kConversions = {{
    {"events", "events.k8s.io/v1", "v1", kEventRenames},
    {"horizontalpodautoscalers",
     "autoscaling/v1",
     "autoscaling/v2",
     {},
     AutoscalerToStored,
     AutoscalerFromStored,
     KeepAutoscaler},
}};

const Conversion* Find(const Resource& resource) {
  for (const Conversion& conversion : kConversions) {
    if (conversion.plural == resource.plural &&
        conversion.served_api_version == resource.group_version.ToString()) {
      return &conversion;
    }
  }
  return nullptr;
}

// The schema of the stored form: the same kind in the stored group.
const Message* StoredMessage(const Conversion& conversion, const Resource& resource) {
  return Registry::Builtin().FindKindMessage({"", conversion.stored_api_version}, resource.kind);
}

Object Convert(const Object& object, const Conversion& conversion, bool to_stored,
               std::string_view api_version, const Message* message) {
  Editor edit;
  edit.Keep(object);
  Mut root = edit.Root();
  for (auto [key, value] : object.root().members()) {
    std::string_view name = key;
    for (const Rename& rename : conversion.renames) {
      if (name == (to_stored ? rename.served : rename.stored)) {
        name = to_stored ? rename.stored : rename.served;
        break;
      }
    }
    root.Set(name, value);
  }
  root.Set("apiVersion", api_version);
  return std::move(edit).Finish(message);
}

}  // namespace

std::string ReadAs(std::string_view api_version, std::string_view kind) {
  const bool old = kind == "Eviction" && api_version == "policy/v1beta1";
  return std::string(old ? "policy/v1" : api_version);
}

Object ToStored(Object object, const Resource& served) {
  if (const CustomVersion* custom = AsCustom(served)) {
    if (custom->storage == custom) return object;  // it has been read by the same schema
    return AdmitCustom(*custom->storage, std::move(object), nullptr);
  }
  const Conversion* conversion = Find(served);
  if (!conversion || object.api_version() == conversion->stored_api_version) return object;
  if (conversion->to_stored) return conversion->to_stored(object.root());
  return Convert(object, *conversion, true, conversion->stored_api_version,
                 StoredMessage(*conversion, served));
}

Object FromStored(Object object, const Resource& served) {
  if (const CustomVersion* custom = AsCustom(served)) {
    return AdmitCustom(*custom, std::move(object), nullptr);
  }
  const Conversion* conversion = Find(served);
  if (!conversion || object.api_version() != conversion->stored_api_version) return object;
  if (conversion->from_stored) return conversion->from_stored(object);
  return Convert(object, *conversion, false, served.group_version.ToString(), served.message);
}

void KeepConverted(Mut object, Value old, const Resource& served, Kept kept) {
  const Conversion* conversion = Find(served);
  if (conversion && conversion->keep) conversion->keep(object, old, kept);
}

}  // namespace sextant::api
