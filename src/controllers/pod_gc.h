// Pods that nobody else ends: of nodes that are gone, deleted before they had a node, on nodes
// declared out of service, and ended ones beyond 12500.
// Source: k8s.io/kubernetes pkg/controller/podgc at v1.36.3.
#pragma once

#include <map>
#include <string>

#include "controllers/reconciler.h"

namespace sextant::controllers {

class PodGcController : public Reconciler {
 public:
  explicit PodGcController(Deps deps);

 protected:
  void Reconcile(const ObjectName& key, Done done) override;
  void OnStarted() override;

 private:
  void End(const api::Object& pod, std::string_view reason, std::string_view message,
           const std::shared_ptr<Join>& join);
  void EndTerminated(const std::vector<api::Object>& pods, const std::shared_ptr<Join>& join);
  void EndOrphans(const std::vector<api::Object>& pods, const std::shared_ptr<Join>& join);

  client::Informer& nodes_;
  Writer pods_;
  std::map<std::string, Time> missing_;  // nodes that Pods name and nobody has, since when
};

}  // namespace sextant::controllers
