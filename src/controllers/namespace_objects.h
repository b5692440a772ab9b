// An object that stands in every active namespace: the ServiceAccount "default", the ConfigMap
// "kube-root-ca.crt". Made when it is missing; the ConfigMap is put right when it was changed.
//
// Source: k8s.io/kubernetes pkg/controller/serviceaccount/serviceaccounts_controller.go,
// pkg/controller/certificates/rootcacertpublisher/publisher.go.
#pragma once

#include <memory>
#include <string>

#include "controllers/reconciler.h"

namespace sextant::controllers {

std::unique_ptr<Controller> MakeServiceAccountController(Deps deps);
std::unique_ptr<Controller> MakeRootCaPublisher(Deps deps, std::string ca_pem);

}  // namespace sextant::controllers
