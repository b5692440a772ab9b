// One connection of an HttpClient. Internal to net; I/O thread only.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "net/client_call.h"
#include "net/session.h"
#include "net/transport.h"

namespace sextant::net {

class ClientConnection : public TransportOwner,
                         private ClientSession::Events,
                         public std::enable_shared_from_this<ClientConnection> {
 public:
  // The client it belongs to.
  class Host {
   public:
    virtual ~Host() = default;
    virtual void OnCapacity() = 0;
    virtual void OnCallFailed(std::shared_ptr<CallState> call, Error error, bool retry) = 0;
    virtual void OnCallAnswered(CallState& call) = 0;
    virtual void OnCallDone(CallState& call) = 0;
    virtual void OnClosed(ClientConnection* connection) = 0;
  };

  ClientConnection(std::shared_ptr<Host> host, std::shared_ptr<Transport> transport, bool http2,
                   size_t max_header_bytes);

  void Start();
  size_t capacity() const { return transport_->closed() ? 0 : session_->capacity(); }
  void Submit(const std::shared_ptr<CallState>& call, ClientHead head);
  void Cancel(StreamId id);
  void Consume(StreamId id, size_t bytes);
  void Close(Status why) { transport_->Close(std::move(why)); }
  // Closes what is idle and pings what is silent; every few seconds.
  void Sweep();

  std::shared_ptr<void> KeepAlive() override { return shared_from_this(); }
  void OnOpen() override {}
  void OnBytes(std::string_view bytes) override;
  void OnEnd() override;
  void Produce(std::string& out, size_t room) override { session_->Take(out, room); }
  void OnClosed(Status why) override;

 private:
  void OnHeaders(StreamId id, int status, Headers headers) override;
  void OnData(StreamId id, std::string_view bytes) override;
  void OnDone(StreamId id, Status status, bool unprocessed) override;
  void Settle();

  const bool http2_;
  const std::shared_ptr<Host> host_;
  const std::shared_ptr<Transport> transport_;
  std::unique_ptr<ClientSession> session_;
  std::unordered_map<StreamId, std::shared_ptr<CallState>> calls_;
  size_t unconsumed_ = 0;  // HTTP/1.1
  uint64_t served_ = 0;
  Duration idle_since_;
};

}  // namespace sextant::net
