// One connection of a Server. Internal to net; I/O thread only.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>

#include "net/exchange.h"
#include "net/server.h"
#include "net/session.h"
#include "net/transport.h"

namespace sextant::net {

// What the connections of one I/O thread share with their Server.
class ConnectionHost {
 public:
  virtual ~ConnectionHost() = default;
  virtual const ServerOptions& options() const = 0;
  virtual const Handler& handler() const = 0;
  virtual void OnConnectionClosed(TransportOwner* connection) = 0;
  // A stream that outlives its connection: closed when the server stops.
  virtual void OnUpgraded(const std::shared_ptr<Transport>& transport) = 0;
};

class ServerConnection : public TransportOwner,
                         public ExchangeHost,
                         private ServerSession::Events,
                         public std::enable_shared_from_this<ServerConnection> {
 public:
  ServerConnection(std::shared_ptr<ConnectionHost> host, std::shared_ptr<Transport> transport,
                   Peer peer);

  void Start() { transport_->Start(this); }
  void Shutdown();
  void Close(Status why) { transport_->Close(std::move(why)); }
  // Enforces the time limits; about once a second.
  void Sweep();

  std::shared_ptr<void> KeepAlive() override { return shared_from_this(); }
  void OnOpen() override;
  void OnBytes(std::string_view bytes) override;
  void OnEnd() override;
  void Produce(std::string& out, size_t room) override;
  void OnClosed(Status why) override;

  void OnExchangeReady(Exchange& exchange) override;

 private:
  void OnRequest(StreamId id, Request request) override;
  void OnStreamClosed(StreamId id) override;

  void ChooseProtocol();
  void StartSession(bool http2);
  void Settle();
  void Begin(Exchange& exchange, Exchange::Wish wish);
  void Upgrade(Exchange& exchange, Exchange::Wish wish);
  Headers WebSocketHeaders(const Exchange& exchange, const std::string& protocol) const;

  struct Open {
    std::shared_ptr<Exchange> exchange;
    bool streaming = false;
    // Of a request for an upgrade.
    std::string upgrade;
    std::string web_socket_key;
  };

  const std::shared_ptr<ConnectionHost> host_;
  std::shared_ptr<Transport> transport_;
  std::shared_ptr<const Peer> peer_;
  std::unique_ptr<ServerSession> session_;  // null until the protocol is known
  std::string first_bytes_;                 // while it is not
  std::unordered_map<StreamId, Open> open_;
  std::shared_ptr<std::atomic<int>> writers_ = std::make_shared<std::atomic<int>>(0);
  Duration started_;
  bool peer_ended_ = false;
};

}  // namespace sextant::net
