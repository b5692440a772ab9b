// Pods leave nodes with NoExecute taints that they do not tolerate, at once or after the shortest
// tolerationSeconds of the tolerations in use.
// Source: k8s.io/kubernetes pkg/controller/tainteviction at v1.36.3.
#pragma once

#include <map>
#include <string>

#include "controllers/reconciler.h"

namespace sextant::controllers {

class TaintEvictionController : public Reconciler {
 public:
  explicit TaintEvictionController(Deps deps);

 protected:
  void Reconcile(const ObjectName& key, Done done) override;

 private:
  struct Planned {
    std::string uid;
    Time since;
    Duration after{0};
  };

  void OnNode(const Change& change);
  void Cancel(const ObjectName& key, const api::Object& pod);
  void Evict(const api::Object& pod, Done done);

  client::Informer& nodes_;
  Writer pods_;
  std::map<ObjectName, Planned> planned_;
};

}  // namespace sextant::controllers
