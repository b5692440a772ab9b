// A Client whose calls wait for their answer: for command lines and probes, never on a loop.
#pragma once

#include <string>

#include "client/client.h"

namespace sextant::client {

class Blocking {
 public:
  static constexpr Duration kAnswerLimit = std::chrono::seconds(30);

  explicit Blocking(Client& client) : client_(client) {}

  Result<api::Object> Get(Gvr gvr, ObjectName name);
  Result<struct List> List(Gvr gvr, ListOptions options = {});
  Result<api::Object> Create(Gvr gvr, ObjectName name, api::Object object,
                             WriteOptions options = {});
  Result<api::Object> Patch(Gvr gvr, ObjectName name, PatchType type, api::Object patch,
                            WriteOptions options = {});
  Result<api::Object> Delete(Gvr gvr, ObjectName name, DeleteOptions options = {});
  Result<std::string> PodLog(ObjectName pod, std::string container, int64_t limit_bytes);
  Result<std::string> GetRaw(std::string path);

 private:
  Client& client_;
};

}  // namespace sextant::client
