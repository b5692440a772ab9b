// The kubelets' HTTPS API: logs, exec, attach, port-forward, the list of Pods. All nodes of a lab
// share one listener and are told apart by the TLS server name, which is the node's name.
//
//   KubeletServer nodes(loop, io);
//   nodes.Add(kubelet);
//   auto server = net::Server::Start({&io}, {.listen = ..., .tls = ...}, nodes.Handler());
//
// Only the API server may come in: a client certificate of CN kube-apiserver-kubelet-client, or of
// the organisation system:masters.
//
// Threads: Handler's function runs on I/O threads and posts to the loop; Add and Remove on the
// loop. Paths: pkg/kubelet/server/server.go. Streams: exec and attach over WebSocket
// (v5.channel.k8s.io and v4, binary) or SPDY (v4); port-forward over SPDY, by upgrade or inside a
// WebSocket.
#pragma once

#include <memory>
#include <string>

#include "kubelet/kubelet.h"
#include "net/server.h"

namespace sextant::kubelet {

inline constexpr char kApiServerClientName[] = "kube-apiserver-kubelet-client";

class KubeletServer {
 public:
  // `io` is the I/O thread of the listener.
  KubeletServer(Loop& loop, net::IoThread& io);
  ~KubeletServer();
  KubeletServer(const KubeletServer&) = delete;
  KubeletServer& operator=(const KubeletServer&) = delete;

  void Add(Kubelet& kubelet);  // until Remove; by its node's name
  void Remove(const std::string& node);

  // May outlive the KubeletServer; then it answers 503.
  net::Handler Handler() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sextant::kubelet
