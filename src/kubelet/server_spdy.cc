// How a client and the kubelets' API come to speak SPDY.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kubelet/server_streams.h"
#include "net/websocket.h"

namespace sextant::kubelet {
namespace {

constexpr char kSpdy[] = "SPDY/3.1";
constexpr char kVersions[] = "x-stream-protocol-version";
// apimachinery pkg/util/portforward: what a tunnelled protocol's name begins and ends with.
constexpr std::string_view kTunnelPrefix = "SPDY/3.1+";
constexpr std::string_view kTunnelSuffix = ".k8s.io";

// The protocols that the client would speak over SPDY, in order.
std::vector<std::string> OfferedInTunnel(const net::Request& request) {
  std::vector<std::string> offered;
  for (const std::string& protocol : request.WebSocketProtocols()) {
    if (protocol.starts_with(kTunnelPrefix) && protocol.ends_with(kTunnelSuffix)) {
      offered.push_back(protocol.substr(kTunnelPrefix.size()));
    }
  }
  return offered;
}

std::vector<std::string> OfferedInUpgrade(const net::Request& request) {
  const std::vector<std::string_view> items = request.headers.Items(kVersions);
  return {items.begin(), items.end()};
}

}  // namespace

bool IsSpdyUpgrade(const net::Request& request) { return request.IsUpgradeTo(kSpdy); }

bool IsSpdyTunnel(const net::Request& request) {
  return request.IsWebSocketUpgrade() && !OfferedInTunnel(request).empty();
}

void UpgradeToSpdy(const net::Request& request, std::string_view protocol,
                   const std::shared_ptr<net::ResponseWriter>& writer,
                   std::function<void(std::shared_ptr<net::ByteStream>)> done) {
  const bool tunnel = IsSpdyTunnel(request);
  const std::vector<std::string> offered =
      tunnel ? OfferedInTunnel(request) : OfferedInUpgrade(request);
  if (offered.empty()) {
    return SendText(
        *writer, 400,
        "unable to upgrade: header X-Stream-Protocol-Version does not exist in request");
  }
  if (std::find(offered.begin(), offered.end(), protocol) == offered.end()) {
    return SendText(*writer, 403,
                    fmt::format("unable to upgrade: unable to negotiate protocol: client supports "
                                "[{}], server accepts [{}]",
                                fmt::join(offered, " "), protocol));
  }
  if (tunnel) {
    return writer->UpgradeWebSocket(
        std::string(kTunnelPrefix) + std::string(protocol),
        [writer, done = std::move(done)](std::shared_ptr<net::WebSocket> socket) {
          if (socket) done(net::TunnelOver(std::move(socket)));
        });
  }
  writer->Hijack({{"upgrade", kSpdy}, {kVersions, protocol}},
                 [writer, done = std::move(done)](std::shared_ptr<net::ByteStream> stream) {
                   if (stream) done(std::move(stream));
                 });
}

}  // namespace sextant::kubelet
