// All controllers of a cluster, as kube-controller-manager runs them.
//
//   Controllers controllers({.client_for = [&](const std::string& user) -> client::Client& {...},
//                            .ca_pem = ca});
//   controllers.Start();
//
// Reads go through one set of informers of the user system:kube-controller-manager, writes through
// one client for each controller's own ServiceAccount (system:serviceaccount:kube-system:<name>
// with the groups of ServiceAccounts). They know the cluster only as client::Client.
//
// Threads: everything on the executor of the clients, which must all have the same one.
// Ownership: the clients outlive this. Destroying it stops all; calls under way are dropped.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/schema.h"
#include "client/client.h"
#include "client/informer.h"
#include "controllers/collections.h"
#include "controllers/reconciler.h"

namespace sextant::controllers {

inline constexpr const char* kManagerUser = "system:kube-controller-manager";

struct ControllersOptions {
  // The client for a user; called when constructing, for a user maybe more than once.
  std::function<client::Client&(const std::string& user)> client_for;
  std::string ca_pem;  // for kube-root-ca.crt in every namespace
  // Names as in --controllers ("deployment", "job", ...) that are not to run.
  std::vector<std::string> without;
  // What the cluster serves: garbage collection, quotas and namespace deletion look after it all.
  // Null: the built-in kinds.
  Registries registries;
};

class Controllers {
 public:
  explicit Controllers(ControllersOptions options);
  ~Controllers();
  void Start();

 private:
  ControllersOptions options_;
  client::SharedInformers informers_;
  std::unique_ptr<Collections> collections_;
  std::vector<std::unique_ptr<Controller>> controllers_;
};

}  // namespace sextant::controllers
