// The API server in this process, without sockets: requests in, answers out.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "net/http.h"

namespace sextant::recorded {

struct Answer {
  int status = 0;
  net::Headers headers;
  std::string body;
};

// An answer on its way: a whole one, or a stream that grows.
class Pending : public net::ResponseWriter {
 public:
  // The whole answer, or what came of it within the time.
  Answer Wait(Duration limit);
  // A stream: status and headers as soon as they are there, then the bytes so far.
  bool WaitForHeaders(Duration limit);
  std::string TakeBytes(Duration limit, bool& ended);
  void Close();  // the client goes away
  Answer head();

  void SendResponse(int status, net::Headers headers, net::Buffer body) override;
  void StartStream(int status, net::Headers headers) override;
  bool Write(net::Buffer piece) override;
  void Finish() override;
  void Abort() override;
  size_t buffered_bytes() const override { return 0; }
  bool closed() const override;
  void OnClosed(Task task) override;
  void OnWritable(Task task) override;
  void UpgradeWebSocket(
      std::string protocol,
      std::move_only_function<void(std::shared_ptr<net::WebSocket>)> done) override;
  void Hijack(net::Headers headers,
              std::move_only_function<void(std::shared_ptr<net::ByteStream>)> done) override;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Answer answer_;
  bool started_ = false;
  bool ended_ = false;
  size_t taken_ = 0;
  std::vector<Task> on_closed_;
};

struct Asker {
  std::string name;  // empty: anonymous
  std::vector<std::string> groups;
};

class InProcessServer {
 public:
  InProcessServer();
  ~InProcessServer();
  std::shared_ptr<Pending> Ask(net::Request request, const Asker& asker);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace sextant::recorded
