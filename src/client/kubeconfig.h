// kubeconfig files: read as kubectl reads them, changed as kind changes them.
//
//   ASSIGN_OR_RETURN(Kubeconfig config, LoadKubeconfig({}));
//   ASSIGN_OR_RETURN(RemoteOptions options, OptionsFor(config, ""));      // the current context
//   RETURN_IF_ERROR(MergeContext({.name = "sextant-gpu-lab", .server = ...}, {}));
//
// Rules, from client-go tools/clientcmd/loader.go and kind's pkg/cluster/internal/kubeconfig:
//   - a file named by the caller is the only one; else $KUBECONFIG is a list, of whose files the
//     first that defines a name wins; else $HOME/.kube/config;
//   - relative paths in a file start at its folder;
//   - a change goes to the first file of the list that exists, else to its last; it is made under
//     "<file>.lock", keeps what it does not know, is all or nothing, and leaves the file 0600.
//
// Threads: any; these functions block on files, so never on the core thread. Errors: UsageError
// with a sentence for a person.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/document.h"
#include "base/status.h"
#include "client/remote_client.h"

namespace sextant::client {

struct KubeconfigPlace {
  std::string path;  // --kubeconfig; empty: the environment says
  // Replaceable for tests; unset variables are "".
  std::function<std::string(const char* name)> env = nullptr;
};

struct Kubeconfig {
  struct Item {
    std::string name;
    api::Object value;   // what stands under "cluster", "user" or "context"
    std::string folder;  // of the file it came from
  };
  std::vector<std::string> files;  // read, in order
  std::vector<Item> clusters;
  std::vector<Item> users;
  std::vector<Item> contexts;
  std::string current_context;

  static const Item* Find(const std::vector<Item>& items, std::string_view name);
};

// Missing files of the list are skipped; a missing file named by the caller is an error.
Result<Kubeconfig> LoadKubeconfig(const KubeconfigPlace& place);

// How to reach the cluster of `context` ("": the current one), as its user. Keys and certificates
// are read from their files, credential plugins (exec) are run once. auth-provider and proxy-url
// are refused.
Result<RemoteOptions> OptionsFor(const Kubeconfig& config, std::string_view context);
// The context's own namespace, "default" if it has none.
std::string NamespaceFor(const Kubeconfig& config, std::string_view context);

// What a Pod finds mounted: the service account's token, CA and address. NotFound outside of Pods.
Result<RemoteOptions> InClusterOptions(const KubeconfigPlace& place = {});

// One cluster with its user and context, all three of the same name.
struct ContextEntry {
  std::string name;  // "sextant-gpu-lab"
  std::string server;
  std::string ca_pem;
  std::string client_cert_pem;
  std::string client_key_pem;
  std::string token;  // in place of a certificate
  std::string tls_server_name;
};

// Puts the entry in place of one of the same name and makes it the current context. Gives the file
// that was changed.
Result<std::string> MergeContext(const ContextEntry& entry, const KubeconfigPlace& place);
// Takes the entries of that name out of every file of the list, and the current context if it is
// that one. Files that hold none stay untouched; missing ones are fine.
Status RemoveContext(std::string_view name, const KubeconfigPlace& place);
// The file that holds nothing but this entry, as text.
std::string KubeconfigText(const ContextEntry& entry);

}  // namespace sextant::client
