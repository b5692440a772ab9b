// Custom resources come and go: CustomResourceDefinitions made into the registry that requests see.
//
//   auto kinds = CustomKinds::Start(pipeline, registries);
//
// What kube-apiserver's controllers for CRDs do: names are accepted (NamesAccepted), the kind is
// served and Established, a deleted CRD's objects are removed (Terminating) before it goes.
//
// Start reads what the store has and serves it before it returns. Later changes are heard from the
// store on the core loop and worked out on a strand of the workers: one registry snapshot follows
// the other, each immutable.
// Source: k8s.io/apiextensions-apiserver pkg/controller/{status,establish,finalizer} at v0.36.3.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/custom_kind.h"
#include "base/strand.h"
#include "server/pipeline.h"
#include "server/registry_source.h"

namespace sextant::server {

// `base` with custom kinds besides it: groups of their own after the others, by name.
std::shared_ptr<const api::Registry> RegistryWith(
    std::shared_ptr<const api::Registry> base,
    std::vector<std::shared_ptr<const api::CustomKind>> kinds);

class CustomKinds : public std::enable_shared_from_this<CustomKinds> {
 public:
  static std::shared_ptr<CustomKinds> Start(Pipeline& pipeline, RegistrySource& registries);

 private:
  CustomKinds(Pipeline& pipeline, RegistrySource& registries);
  void Listen();     // core
  void LookAgain();  // any
  void LookAgainSoon();
  void Look();  // strand
  std::vector<api::Object> ServeAll();

  // What is to be done with one CRD; all on the strand.
  void Serve(const api::Object& crd, std::vector<std::shared_ptr<const api::CustomKind>>& served);
  void Settle(const api::Object& crd, const std::vector<api::Object>& all);
  void Finalize(const api::Object& crd);
  void DeleteObjects(const std::string& name);
  void AfterDeletion(const std::string& name, Result<Outcome> deleted);
  void Release(const std::string& name, std::string reason, std::string message);

  using ChangeCrd = std::function<void(api::Mut root, std::string_view now)>;
  void Write(const std::string& name, ChangeCrd change, std::function<void()> then);
  Operation CrdOperation(std::string_view verb, const std::string& name) const;

  Pipeline& pipeline_;
  RegistrySource& registries_;
  const std::shared_ptr<const api::Registry> base_;
  Strand strand_;
  std::unique_ptr<store::Watch> watch_;  // core only
  std::atomic<bool> look_pending_ = false;
  // Strand only:
  std::map<std::string, std::shared_ptr<const api::CustomKind>> compiled_;  // by CRD name
  std::set<std::string> finalizing_;                                        // CRD names
};

}  // namespace sextant::server
