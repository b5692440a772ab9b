#include "controllers/namespace_objects.h"

#include "controllers/objects.h"

namespace sextant::controllers {
namespace {

using api::Editor;
using api::Mut;
using api::Object;

constexpr std::string_view kRootCa = "kube-root-ca.crt";
constexpr std::string_view kDescription = "kubernetes.io/description";
constexpr std::string_view kRootCaDescription =
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters.";

struct Wanted {
  std::string component;
  Gvr gvr;
  std::string name;
  std::function<void(Mut)> fill;                // all but name and namespace
  std::function<bool(const Object&)> is_right;  // null: any will do
};

// The namespace does not take it, now or ever.
bool IsNoPlace(const Error& error) { return IsNamespaceEnding(error) || error.code == 404; }

class NamespaceObjects : public Reconciler {
 public:
  NamespaceObjects(Deps deps, Wanted wanted)
      : Reconciler(deps, {.component = wanted.component}),
        wanted_(std::move(wanted)),
        namespaces_(Use(client::kNamespaces)),
        objects_(*this, wanted_.gvr) {
    Hear(namespaces_, [this](const Change& change) {
      if (!change.deleted()) Enqueue(change.name());
    });
    Hear(objects_.cache(), [this](const Change& change) {
      if (change.object().name() == wanted_.name && !change.added()) {
        Enqueue({"", std::string(change.object().ns())});
      }
    });
  }

 protected:
  void Reconcile(const ObjectName& key, Done done) override {
    const Object space = namespaces_.Get(key);
    if (!space || IsDeleting(space)) return done({});
    if (space["status"]["phase"].AsString("Active") != "Active") return done({});
    const Object have = objects_.cache().Get({key.name, wanted_.name});
    if (have && (!wanted_.is_right || wanted_.is_right(have))) return done({});
    Editor edit = have ? Editor(have) : Editor();
    wanted_.fill(edit.Root());
    edit["metadata"].Set("name", wanted_.name);
    edit["metadata"].Set("namespace", key.name);
    auto end = [done = std::move(done)](Result<Object> made) mutable {
      if (made || IsNoPlace(made.error()) || made.error().Is("AlreadyExists")) return done({});
      done(Fail(std::move(made).error()));
    };
    Object object = objects_.Finish(std::move(edit));
    if (have) return objects_.Update(std::move(object), std::move(end));
    objects_.Create(std::move(object), std::move(end));
  }

 private:
  const Wanted wanted_;
  client::Informer& namespaces_;
  Writer objects_;
};

}  // namespace

std::unique_ptr<Controller> MakeServiceAccountController(Deps deps) {
  return std::make_unique<NamespaceObjects>(
      deps, Wanted{"service-account-controller", client::kServiceAccounts, "default",
                   [](Mut root) {
                     root.Set("apiVersion", "v1");
                     root.Set("kind", "ServiceAccount");
                   },
                   nullptr});
}

std::unique_ptr<Controller> MakeRootCaPublisher(Deps deps, std::string ca_pem) {
  const auto fill = [ca_pem](Mut root) {
    root.Set("apiVersion", "v1");
    root.Set("kind", "ConfigMap");
    root["metadata"]["annotations"].Set(kDescription, kRootCaDescription);
    root.Erase("data");
    root["data"].Set("ca.crt", ca_pem);
  };
  const auto is_right = [ca_pem](const Object& have) {
    return have["data"].size() == 1 && have["data"]["ca.crt"].AsString() == ca_pem &&
           !have["metadata"]["annotations"][kDescription].AsString().empty();
  };
  return std::make_unique<NamespaceObjects>(
      deps,
      Wanted{"root-ca-cert-publisher", client::kConfigMaps, std::string(kRootCa), fill, is_right});
}

}  // namespace sextant::controllers
