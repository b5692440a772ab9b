#include "kubelet/kubelet_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "api/json.h"
#include "kubelet/server_streams.h"

namespace sextant::kubelet {
namespace {

bool MayEnter(const net::Peer& peer) {
  if (!peer.client_cert) return false;
  const net::ClientCert& cert = *peer.client_cert;
  return cert.common_name == kApiServerClientName ||
         std::find(cert.organizations.begin(), cert.organizations.end(), "system:masters") !=
             cert.organizations.end();
}

// "/containerLogs/default/web/c" → its four parts, decoded; empty if one is not decodable.
std::vector<std::string> Parts(std::string_view path) {
  std::vector<std::string> parts;
  size_t begin = 1;
  while (begin <= path.size()) {
    const size_t end = std::min(path.find('/', begin), path.size());
    auto part = net::PercentDecode(path.substr(begin, end - begin));
    if (!part) return {};
    parts.push_back(*std::move(part));
    begin = end + 1;
  }
  return parts;
}

std::string PodListText(const std::vector<api::Object>& pods) {
  api::Editor edit;
  const api::Mut root = edit.Root();
  root.Set("kind", "PodList");
  root.Set("apiVersion", "v1");
  root["metadata"].SetMap();
  root["items"].SetList();
  for (const api::Object& pod : pods) root["items"].Append().Set(pod);
  return api::ToJson(root.Snapshot());
}

}  // namespace

class KubeletServer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(Loop& loop, net::IoThread& io) : loop_(loop), io_(io) {}

  void Add(Kubelet& kubelet) { kubelets_[kubelet.node()] = std::make_shared<Kubelet*>(&kubelet); }
  void Remove(const std::string& node) { kubelets_.erase(node); }

  // On an I/O thread.
  static void Receive(const std::weak_ptr<Impl>& weak, net::Request request,
                      std::shared_ptr<net::ResponseWriter> writer) {
    if (!MayEnter(*request.peer)) return SendText(*writer, 401, "Unauthorized");
    const auto self = weak.lock();
    if (!self) return SendText(*writer, 503, "the lab is stopping");
    self->loop_.Post([weak, request = std::move(request), writer = std::move(writer)]() mutable {
      if (auto here = weak.lock()) return here->Serve(request, std::move(writer));
      SendText(*writer, 503, "the lab is stopping");
    });
  }

 private:
  void Serve(const net::Request& request, std::shared_ptr<net::ResponseWriter> writer) {
    const auto found = kubelets_.find(request.peer->server_name);
    if (found == kubelets_.end() || !(*found->second)->running()) {
      return SendText(*writer, 503,
                      fmt::format("node \"{}\" is not running", request.peer->server_name));
    }
    Kubelet& kubelet = **found->second;
    const std::vector<std::string> parts = Parts(request.path);
    auto query = net::ParseQuery(request.query);
    if (parts.empty() || !query) return SendText(*writer, 400, "malformed request");
    const std::string& what = parts[0];
    if (what == "healthz" && parts.size() == 1) return SendText(*writer, 200, "ok");
    if (what == "pods" && parts.size() <= 2) {
      return writer->SendResponse(200, {{"content-type", "application/json"}},
                                  PodListText(kubelet.Pods()));
    }
    if (what == "containerLogs" && parts.size() == 4) {
      return Log(kubelet, found->second, parts, *query, std::move(writer));
    }
    if ((what == "exec" || what == "attach") && (parts.size() == 4 || parts.size() == 5)) {
      return Stream(kubelet, found->second, request, parts, *query, std::move(writer));
    }
    if (what == "portForward" && parts.size() >= 3) {
      return PortForward(kubelet, found->second, request, parts, *query, std::move(writer));
    }
    SendText(*writer, 404, "404 page not found\n");
  }

  static void Log(Kubelet& kubelet, const NodeRef& node, const std::vector<std::string>& parts,
                  const Query& query, std::shared_ptr<net::ResponseWriter> writer) {
    auto options = ReadLogOptions(query);
    if (!options) return SendText(*writer, options.error().code, options.error().message);
    ServeLog(kubelet, node,
             {parts[1], parts[2], parts[3], QueryFlag(query, "previous"), *std::move(options)},
             std::move(writer));
  }

  void Stream(Kubelet& kubelet, const NodeRef& node, const net::Request& request,
              const std::vector<std::string>& parts, const Query& query,
              std::shared_ptr<net::ResponseWriter> writer) {
    // "/exec/ns/pod/container" or, with a uid, "/exec/ns/pod/uid/container".
    auto id = kubelet.FindRunning(parts[1], parts[2], parts.back());
    if (!id) {
      // GetAttach has other words than GetExec for a container that does not run.
      const bool attach = parts[0] == "attach" && id.error().code == 500;
      return SendText(*writer, id.error().code,
                      attach ? fmt::format("container {} not found in pod {}_{}", parts.back(),
                                           parts[2], parts[1])
                             : id.error().message);
    }
    if (!request.IsWebSocketUpgrade() && !IsSpdyUpgrade(request)) {
      return SendText(*writer, 400, "Upgrade request required");
    }
    StreamRequest stream;
    stream.attach = parts[0] == "attach";
    stream.container_id = *std::move(id);
    stream.tty = QueryFlag(query, "tty");
    stream.use_stdin = QueryFlag(query, "input");
    stream.use_stdout = QueryFlag(query, "output");
    stream.use_stderr = QueryFlag(query, "error") && !stream.tty;
    for (const auto& [name, value] : query)
      if (name == "command") stream.argv.push_back(value);
    if (!stream.attach && stream.argv.empty()) {
      return SendText(*writer, 400, "no command was given");
    }
    ServeStream(node, loop_, io_, std::move(stream), request, std::move(writer));
  }

  void PortForward(Kubelet& kubelet, const NodeRef& node, const net::Request& request,
                   const std::vector<std::string>& parts, const Query& query,
                   std::shared_ptr<net::ResponseWriter> writer) {
    auto sandbox = kubelet.FindSandbox(parts[1], parts[2]);
    if (!sandbox) return SendText(*writer, sandbox.error().code, sandbox.error().message);
    if (!request.IsWebSocketUpgrade() && !IsSpdyUpgrade(request)) {
      return SendText(*writer, 400, "Upgrade request required");
    }
    std::vector<uint16_t> ports;
    for (const auto& [name, value] : query) {
      if (name != "port" && name != "ports") continue;
      const long port = std::strtol(value.c_str(), nullptr, 10);
      if (port < 1 || port > 65535) {
        return SendText(*writer, 400, fmt::format("invalid port \"{}\"", value));
      }
      ports.push_back(static_cast<uint16_t>(port));
    }
    ServePortForward({node, &loop_, &io_, *std::move(sandbox)}, ports, request, std::move(writer));
  }

  Loop& loop_;
  net::IoThread& io_;
  std::map<std::string, std::shared_ptr<Kubelet*>> kubelets_;  // loop
};

KubeletServer::KubeletServer(Loop& loop, net::IoThread& io)
    : impl_(std::make_shared<Impl>(loop, io)) {}
KubeletServer::~KubeletServer() = default;
void KubeletServer::Add(Kubelet& kubelet) { impl_->Add(kubelet); }
void KubeletServer::Remove(const std::string& node) { impl_->Remove(node); }

net::Handler KubeletServer::Handler() const {
  return [weak = std::weak_ptr<Impl>(impl_)](net::Request request,
                                             std::shared_ptr<net::ResponseWriter> writer) {
    Impl::Receive(weak, std::move(request), std::move(writer));
  };
}

}  // namespace sextant::kubelet
