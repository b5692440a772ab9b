// The client of an exec or attach, whatever it speaks: what it sends and what it is sent. Internal
// to the kubelets' API.
//
// Threads: methods from the loop; handlers run on the I/O thread of the connection, in order.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kubelet/server_streams.h"

namespace sextant::kubelet {

// apimachinery pkg/util/remotecommand.
enum class StreamChannel : uint8_t {
  kStdin = 0,
  kStdout = 1,
  kStderr = 2,
  kError = 3,
  kResize = 4,
  kClose = 255
};

class StreamClient {
 public:
  struct Handlers {
    std::function<void(std::string)> on_input;
    std::function<void()> on_input_end;
    std::function<void(std::string_view)> on_resize;  // {"Width": 80, "Height": 24}
    std::function<void()> on_gone;                    // last of all, once
  };

  virtual ~StreamClient() = default;
  virtual void Start(Handlers handlers) = 0;
  // False if the client takes no more: the stream is to be given up.
  virtual bool Send(StreamChannel channel, std::string_view bytes) = 0;
  virtual void OnWritable(Task task) = 0;
  virtual void Pause() = 0;  // back pressure on input
  virtual void Resume() = 0;
  virtual void Finish(const std::string& status) = 0;  // the Status that says how it ended
};

// Joins `client` with the runtime's session that `request` asks for. Any thread.
void JoinStream(const NodeRef& node, Loop& loop, StreamRequest request,
                std::shared_ptr<StreamClient> client);

// A client that speaks v4.channel.k8s.io over SPDY.
void ServeStreamOverSpdy(NodeRef node, Loop& loop, net::IoThread& io, StreamRequest request,
                         std::shared_ptr<net::ByteStream> client);

}  // namespace sextant::kubelet
