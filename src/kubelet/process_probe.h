// Probes over a socket in a Pod's network. On the runtime's loop only.
#pragma once

#include <memory>

#include "kubelet/process_core.h"

namespace sextant::kubelet {

inline constexpr size_t kProbeBodyMax = 10 * 1024;  // kubelet's limit for a probe's body

void RunHttpProbe(ProcessCore& core, std::shared_ptr<ProcessSandbox> sandbox, HttpProbe probe,
                  ProbeCallback done);
void RunGrpcProbe(ProcessCore& core, std::shared_ptr<ProcessSandbox> sandbox, GrpcProbe probe,
                  ProbeCallback done);
void RunTcpProbe(ProcessCore& core, std::shared_ptr<ProcessSandbox> sandbox, TcpProbe probe,
                 ProbeCallback done);
// Connects to a port of the Pod at localhost, first by IPv4, then by IPv6.
void DialLocalhost(ProcessCore& core, std::shared_ptr<ProcessSandbox> sandbox, uint16_t port,
                   std::function<void(Result<Fd>)> done);

}  // namespace sextant::kubelet
