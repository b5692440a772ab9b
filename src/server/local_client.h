// LocalClient: client::Client on the pipeline of this process, made for one user. It skips bytes
// only (TLS, authentication, codec), never authorization, admission, managed fields or audit.
//
// Ownership: the pipeline and the executor must outlive it and its calls; it may go before they
// end. Threads: as client::Client says.
#pragma once

#include <memory>

#include "client/client.h"
#include "server/pipeline.h"

namespace sextant::server {

// Where log and raw requests of a LocalClient go: what needs the HTTP side of the server.
class LocalExtras {
 public:
  virtual ~LocalExtras() = default;
  virtual void PodLog(const User& user, client::ObjectName pod, std::string container,
                      int64_t limit_bytes, client::Callback<std::string> done) = 0;
  virtual void Raw(const User& user, std::string path, client::Callback<std::string> done) = 0;
  // What is no view of a stored object: scale, binding, eviction, token, reviews. False: none such.
  virtual bool ExecuteSubresource(Operation& op, Respond& done) = 0;
};

std::unique_ptr<client::Client> MakeLocalClient(
    Pipeline& pipeline, LocalExtras& extras, User user, Loop& executor,
    std::function<std::shared_ptr<const api::Registry>()> registry);

}  // namespace sextant::server
