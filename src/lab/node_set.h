// The simulated nodes of a lab: their machines, kubelets and agents, the listener that they share,
// and the way by which the API server reaches them.
//
// Threads: Make on the starting thread; Start, Add, Remove and Stop on the core loop; NodeDialer's
// methods from any thread.
#pragma once

#include <memory>
#include <string>

#include "client/informer.h"
#include "host/machine.h"
#include "lab/config.h"
#include "lab/lab.h"
#include "lab/pki.h"
#include "net/io.h"
#include "server/api_server.h"
#include "server/node_dialer.h"

namespace sextant::lab {

// A Node with this label is a machine that the lab runs, though its configuration does not name it.
inline constexpr std::string_view kSimulatedLabel = "sextant.dev/simulated";
// "off" switches a simulated node off, as pulling its plug would; anything else is on.
inline constexpr std::string_view kPowerAnnotation = "sextant.dev/power";

struct NodeSetParts {
  Loop& core;
  Executor& files;
  net::IoThread& io;
  const Clock& clock;
  const Pki& pki;
  const LabConfig& config;
  const LabPaths& paths;
};

class NodeSet : public server::NodeDialer {
 public:
  // Binds the kubelets' listener on loopback.
  static Result<std::unique_ptr<NodeSet>> Make(NodeSetParts parts);

  // Brings the configuration's nodes up. `informers` and its client are the lab's own.
  virtual void Start(server::ApiServer& api, client::SharedInformers& informers) = 0;
  virtual void Stop() = 0;
  // nullptr where there is no such node.
  virtual host::SimulatedMachine* Machine(const std::string& node) = 0;
  virtual std::string runtime_level() const = 0;
  virtual std::string runtime_explanation() const = 0;
};

}  // namespace sextant::lab
