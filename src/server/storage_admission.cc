// DefaultStorageClass and StorageObjectInUseProtection: what new claims and volumes get.
// Source: plugin/pkg/admission/storage at v1.36.3.
#include "api/default_class.h"
#include "server/admission_plugins.h"

namespace sextant::server {
namespace {

using api::Mut;
using api::Object;

struct Row {
  std::string_view resource;
  std::string_view finalizer;
  bool takes_class;  // the default one, where it names none
};
constexpr Row kRows[] = {
    {"persistentvolumeclaims", "kubernetes.io/pvc-protection", true},
    {"persistentvolumes", "kubernetes.io/pv-protection", false},
};
constexpr std::string_view kClasses = "storageclasses.storage.k8s.io";
constexpr std::string_view kClassBeta = "volume.beta.kubernetes.io/storage-class";

const Row* RowFor(const AdmissionRequest& request) {
  if (request.verb != "create" || request.op.subresource) return nullptr;
  if (!request.op.resource->group_version.group.empty()) return nullptr;
  for (const Row& row : kRows)
    if (row.resource == request.op.resource->plural) return &row;
  return nullptr;
}

void Protect(Mut metadata, std::string_view finalizer) {
  const Mut list = metadata["finalizers"];
  for (size_t i = 0; i < list.size(); ++i)
    if (list.at(i).AsString() == finalizer) return;
  list.Append().SetString(finalizer);
}

void TakeClass(const AdmissionRequest& request, Mut object) {
  if (object["spec"].Has("storageClassName")) return;
  if (object["metadata"]["annotations"].Has(kClassBeta)) return;
  const auto stored = request.view.Snapshot(kClasses);
  if (!stored) return;
  std::vector<Object> classes;
  for (const auto& entry : stored->Range("", "", "", 0)) classes.push_back(entry->object);
  const Object found = api::DefaultStorageClass(classes);
  if (found) object["spec"].Set("storageClassName", found.name());
}

class StorageAdmission : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "DefaultStorageClass"; }

  Status Admit(const AdmissionRequest& request, Mut object) const override {
    const Row* row = RowFor(request);
    if (!row) return {};
    Protect(object["metadata"], row->finalizer);
    if (row->takes_class) TakeClass(request, object);
    return {};
  }
};

}  // namespace

std::unique_ptr<AdmissionPlugin> MakeStorageAdmission() {
  return std::make_unique<StorageAdmission>();
}

}  // namespace sextant::server
