// Keeps the ResourceSlices of one node as its cards are, for each DRA driver one pool with the
// node's name: what the helper library of DRA drivers does for them.
//
//   SlicePublisher publisher(client, {.node = "worker"});
//   publisher.Publish(DraDevices(cards));   // again at each change of the cards
//
// A slice that somebody deletes or changes comes back. The slices belong to the Node object and go
// with it; they say in an annotation that the devices are simulated. Slices outlive this object, as
// they outlive a driver that is restarted.
//
// Threads: everything on client.executor(). Errors: logged and tried again.
// Source: k8s.io/dynamic-resource-allocation/resourceslice/resourceslicecontroller.go (syncPool).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/dra_devices.h"
#include "base/alive.h"
#include "client/client.h"
#include "client/informer.h"

namespace sextant::agent {

inline constexpr std::string_view kSimulatedAnnotation = "sextant.dev/simulated";

struct SliceOptions {
  std::string node;
  bool simulated = true;
};

class SlicePublisher {
 public:
  SlicePublisher(client::Client& client, SliceOptions options);
  ~SlicePublisher();

  // Nothing is asked or written before the first call.
  void Publish(std::vector<DriverDevices> wanted);

 private:
  struct Write;
  void SyncSoon();
  void Sync();
  void Compare(std::string node_uid, const std::vector<api::Object>& slices);
  std::vector<Write> WritesFor(const DriverDevices& driver, const std::string& node_uid,
                               const std::vector<api::Object>& slices) const;
  void Send(std::shared_ptr<std::vector<Write>> writes, size_t next);
  void Done(const Error* error);

  client::Client& client_;
  const SliceOptions options_;
  std::vector<DriverDevices> wanted_;
  std::unique_ptr<client::Informer> slices_;  // tells of changes; what is compared is read anew
  std::unique_ptr<client::Subscription> changes_;
  bool syncing_ = false;
  bool again_ = false;  // something has changed since the sync that runs began
  bool posted_ = false;
  TimerId retry_ = 0;
  Alive alive_;
};

}  // namespace sextant::agent
