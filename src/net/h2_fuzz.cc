#include <map>

#include "base/check.h"
#include "base/executor.h"
#include "base/fuzz.h"
#include "net/session.h"

namespace sextant::net {
namespace {

constexpr size_t kMaxStreams = 64;

struct ServerSide : ServerSession::Events {
  void OnRequest(StreamId id, Request) override {
    CHECK(!open.contains(id));
    open.insert(id);
    requests.push_back(id);
  }
  void OnStreamClosed(StreamId id) override { CHECK(open.erase(id) == 1); }
  std::set<StreamId> open;
  std::vector<StreamId> requests;
};

struct ClientSide : ClientSession::Events {
  void OnHeaders(StreamId id, int status, Headers) override {
    CHECK(open.contains(id));
    CHECK(status >= 100 && status <= 999);
  }
  void OnData(StreamId id, std::string_view bytes) override {
    CHECK(open.contains(id));
    session->Consume(id, bytes.size());
  }
  void OnDone(StreamId id, Status, bool) override { CHECK(open.erase(id) == 1); }
  ClientSession* session = nullptr;
  std::set<StreamId> open;
};

ServerSessionOptions SmallLimits() {
  ServerSessionOptions options;
  options.limits.max_body = 64 << 10;
  return options;
}

// Our client and our server with a wire between them; the input says who does what.
class Wire {
 public:
  Wire()
      : server_(NewH2ServerSession(clock_, SmallLimits(), server_side_)),
        client_(NewH2ClientSession(16 << 10, client_side_)) {
    client_side_.session = client_.get();
  }

  void Take(fuzz::Bytes& bytes) {
    switch (bytes.Byte() % 8) {
      case 0:
      case 1:
        return Submit(bytes);
      case 2:
        return Respond(bytes);
      case 3:
        if (!client_side_.open.empty()) Cancel(*client_side_.open.begin());
        return;
      case 4:
        if (!server_side_.open.empty()) server_->Reset(*server_side_.open.begin());
        return;
      case 5:
        return Move(*client_, *server_, bytes.Byte(), bytes);
      case 6:
        return Move(*server_, *client_, bytes.Byte(), bytes);
      default:
        clock_.Advance(std::chrono::seconds(bytes.Byte()));
        ok_ = ok_ && server_->Sweep().has_value();
    }
  }

  // Nobody does anything any more: all that is open comes to its end.
  void Settle() {
    fuzz::Bytes none("");
    for (int i = 0; i < 100 && ok_; ++i) {
      Move(*client_, *server_, 0, none);
      for (const StreamId id : std::set<StreamId>(server_side_.open)) Answer(id, 10);
      Move(*server_, *client_, 0, none);
    }
    if (ok_ && !damaged_) CHECK(client_side_.open.empty());
    client_->End(Error{});
    CHECK(client_side_.open.empty());
  }

  bool ok() const { return ok_; }

 private:
  void Submit(fuzz::Bytes& bytes) {
    if (client_side_.open.size() >= kMaxStreams || client_->capacity() == 0) return;
    ClientHead head{.method = bytes.Byte() % 2 ? "GET" : "POST",
                    .target = "/" + std::string(bytes.Take(bytes.Byte() % 16)),
                    .scheme = "https",
                    .authority = "host"};
    head.headers.Add("x-fuzz", std::string(bytes.Byte(), 'x'));
    const StreamId id =
        client_->Submit(std::move(head), MakeBuffer(std::string(bytes.Byte() * 100u, 'b')));
    client_side_.open.insert(id);
  }

  void Cancel(StreamId id) {
    client_->Cancel(id);
    client_side_.open.erase(id);
  }

  void Respond(fuzz::Bytes& bytes) {
    if (server_side_.requests.empty()) return;
    const StreamId id = server_side_.requests[bytes.Byte() % server_side_.requests.size()];
    Answer(id, bytes.Byte() * 500u);
  }

  void Answer(StreamId id, size_t size) {
    if (!server_side_.open.contains(id) || !answered_.insert(id).second) return;
    server_->Respond(id, {.status = 200},
                     std::make_shared<WholeBody>(MakeBuffer(std::string(size, 'a'))));
  }

  // `damage`: where one bit is turned over, 0: nowhere.
  template <typename From, typename To>
  void Move(From& from, To& to, uint8_t damage, fuzz::Bytes& bytes) {
    std::string wire;
    from.Take(wire, 64 << 10);
    if (damage != 0 && !wire.empty()) {
      damaged_ = true;
      char& hit = wire[(damage * 7u + bytes.Byte()) % wire.size()];
      hit = static_cast<char>(hit ^ (1 << (damage % 8)));
    }
    if (ok_ && !wire.empty()) ok_ = to.Feed(wire).has_value();
  }

  ManualLoop clock_;
  ServerSide server_side_;
  ClientSide client_side_;
  std::unique_ptr<ServerSession> server_;
  std::unique_ptr<ClientSession> client_;
  std::set<StreamId> answered_;
  bool ok_ = true;
  bool damaged_ = false;
};

}  // namespace

// The input is a list of actions.
FUZZ_TARGET(http2) {
  Wire wire;
  fuzz::Bytes bytes(input.substr(0, 4096));
  while (!bytes.empty() && wire.ok()) wire.Take(bytes);
  wire.Settle();
}

// The input is what a client, or a server, sends.
FUZZ_TARGET(http2_raw) {
  ManualLoop clock;
  {
    ServerSide side;
    const auto server = NewH2ServerSession(clock, SmallLimits(), side);
    std::string out;
    if (server->Feed(kH2Preface)) (void)server->Feed(input);
    for (const StreamId id : std::set<StreamId>(side.open))
      server->Respond(id, {.status = 204}, nullptr);
    server->Take(out, 1 << 20);
  }
  ClientSide side;
  const auto client = NewH2ClientSession(16 << 10, side);
  side.session = client.get();
  side.open.insert(client->Submit({"GET", "/", "https", "host", {}}, nullptr));
  std::string out;
  client->Take(out, 1 << 20);
  (void)client->Feed(input);
  client->End(Error{});
  CHECK(side.open.empty());
}

}  // namespace sextant::net
