// A cluster for this room's tests: the real server over a store in memory, on one ManualLoop, with
// the default roles, a scheduler and kubelets played by hand.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/executor.h"
#include "controllers/controllers.h"
#include "server/custom_kinds.h"
#include "server/local_client.h"
#include "server/served.h"
#include "server/subresources.h"
#include "store/store.h"

namespace sextant::controllers::testing {

// The definition of widgets.x.io, served in this version alone.
std::string WidgetsIn(std::string_view version);

class Cluster : private server::LocalExtras {
 public:
  explicit Cluster(std::vector<std::string> without = {});
  ~Cluster() override;

  // Runs everything that is ready, without moving time.
  void Settle() { loop.RunReady(); }
  void Advance(Duration d) { loop.Advance(d); }
  // Stops the controllers when the loop has turned so often, whatever they are at.
  void StopAfter(int turns);
  // Lets scheduler and kubelets do their work until nothing changes any more.
  void Play();

  // What is served, with custom kinds.
  std::shared_ptr<const api::Registry> Served() const { return registries_->Get(); }
  // As an administrator. Failures fail the test and give an empty object.
  api::Object Create(Gvr gvr, std::string_view json);
  api::Object Get(Gvr gvr, const ObjectName& name);  // empty where there is none
  std::vector<api::Object> List(Gvr gvr, const std::string& ns = "");
  api::Object Patch(Gvr gvr, const ObjectName& name, std::string_view merge_patch,
                    std::string subresource = "");
  void Delete(Gvr gvr, const ObjectName& name, std::string propagation = "");

  // A Ready node with a lease, a worker unless `spec` says otherwise.
  void AddNode(const std::string& name, std::string_view spec = "{}");
  void RenewLease(const std::string& name);
  // Pods as "name-prefix" counts: those whose name starts with `prefix` and that are not deleting.
  std::vector<api::Object> Pods(std::string_view prefix, const std::string& ns = "default");
  // "reason: message" of all events about `name`.
  std::vector<std::string> Events(std::string_view name);

  ManualLoop loop;
  // What Play makes of a bound Pod's phase: "Running" unless its name is here (by prefix).
  std::map<std::string, std::string> phases;
  bool deaf = false;  // kubelets do nothing

 private:
  void PodLog(const server::User&, ObjectName, std::string, int64_t,
              client::Callback<std::string> done) override;
  void Raw(const server::User&, std::string, client::Callback<std::string> done) override;
  bool ExecuteSubresource(server::Operation& op, server::Respond& done) override;
  client::Client& ClientFor(const std::string& user);
  bool PlayPod(const api::Object& pod);
  void LoadRoles();
  api::Object Wait(std::string_view what, std::function<void(client::Callback<api::Object>)> call,
                   bool may_fail = false);

  std::unique_ptr<store::Store> store_;
  std::unique_ptr<server::Authorizer> authorizer_;
  std::unique_ptr<server::Pipeline> pipeline_;
  std::unique_ptr<server::TokenIssuer> tokens_;
  std::unique_ptr<server::Authenticator> authenticator_;
  std::unique_ptr<server::Subresources> subresources_;
  std::unique_ptr<server::RegistrySource> registries_;
  std::shared_ptr<server::CustomKinds> custom_kinds_;
  std::map<std::string, std::unique_ptr<client::Client>> clients_;
  std::unique_ptr<Controllers> controllers_;
};

}  // namespace sextant::controllers::testing
