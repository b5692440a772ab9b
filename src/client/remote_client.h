// RemoteClient: any Kubernetes over HTTPS.
//
//   ASSIGN_OR_RETURN(Kubeconfig config, LoadKubeconfig({}));
//   ASSIGN_OR_RETURN(RemoteOptions options, OptionsFor(config, ""));
//   RemoteClient client(io, loop, options);
//
// Speaks JSON. Items of lists get the kind and apiVersion that servers leave out, so that an object
// is the same however it was read. A service account's token file is read again every minute.
//
// Threads: calls from any thread; completions and watch callbacks run on `executor`. A watch handle
// is dropped on the executor. Errors: the server's Status; kTransport when no answer came.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "client/client.h"
#include "net/client.h"

namespace sextant::client {

struct RemoteOptions {
  std::string server;      // "https://127.0.0.1:6443", maybe with a path before /api
  net::ClientTls tls;      // CA and client certificate as PEM
  std::string token;       // bearer; may be empty
  std::string token_file;  // wins over `token` once it could be read
  std::string username;    // basic authentication; may be empty
  std::string password;
  std::string impersonate_user;
  std::vector<std::string> impersonate_groups;
  std::string user_agent = "sextant";
};

// The path of a collection, object or subresource: "/apis/apps/v1/namespaces/a/deployments/web".
std::string PathOf(const Gvr& gvr, std::string_view ns, std::string_view name = {},
                   std::string_view subresource = {});

class RemoteClient : public Client {
 public:
  RemoteClient(net::IoThread& io, Loop& executor, RemoteOptions options);
  ~RemoteClient() override;

  Loop& executor() override { return executor_; }
  void Get(Gvr gvr, ObjectName name, Callback<api::Object> done) override;
  void List(Gvr gvr, ListOptions options, Callback<struct List> done) override;
  std::unique_ptr<WatchHandle> Watch(Gvr gvr, WatchOptions options,
                                     WatchCallbacks callbacks) override;
  void Create(Gvr gvr, ObjectName name, api::Object object, WriteOptions options,
              Callback<api::Object> done) override;
  void Update(Gvr gvr, ObjectName name, api::Object object, WriteOptions options,
              Callback<api::Object> done) override;
  void Patch(Gvr gvr, ObjectName name, PatchType type, api::Object patch, WriteOptions options,
             Callback<api::Object> done) override;
  void Delete(Gvr gvr, ObjectName name, DeleteOptions options, Callback<api::Object> done) override;
  void DeleteCollection(Gvr gvr, ListOptions which, DeleteOptions options,
                        Callback<api::Object> done) override;
  void PodLog(ObjectName pod, std::string container, int64_t limit_bytes,
              Callback<std::string> done) override;
  void GetRaw(std::string path, Callback<std::string> done) override;

  // For what goes beyond the verbs (exec, port-forward): the connection, and the headers that tell
  // the server who we are.
  net::HttpClient& http() { return http_; }
  net::Headers IdentityHeaders();

 private:
  void Send(std::string method, std::string target, std::string content_type, net::Buffer body,
            Callback<std::string> done);
  void SendForObject(std::string method, std::string target, std::string content_type,
                     net::Buffer body, Callback<api::Object> done);
  std::string Token();

  Loop& executor_;
  const RemoteOptions options_;
  std::mutex mutex_;
  std::string token_;                      // guarded by mutex_
  std::optional<Duration> token_read_at_;  // guarded by mutex_
  net::HttpClient http_;                   // last: dies first
};

}  // namespace sextant::client
