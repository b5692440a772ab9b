#include "client/kubeconfig.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "api/yaml.h"
#include "base/base64.h"
#include "base/file.h"
#include "base/quote.h"
#include "client/exec_credential.h"

namespace sextant::client {
namespace {

constexpr size_t kMaxFileBytes = size_t{4} << 20;
constexpr size_t kMaxFiles = 100;
constexpr int kLockTries = 50;
constexpr auto kLockPause = std::chrono::milliseconds(100);
constexpr mode_t kFolderMode = 0755;  // as client-go and kind
constexpr mode_t kFileMode = 0600;
constexpr const char* kServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount";

std::string Env(const KubeconfigPlace& place, const char* name) {
  if (place.env) return place.env(name);
  const char* value = getenv(name);
  return value ? value : "";
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool Exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode);
}

// The files to look at, in order.
Result<std::vector<std::string>> Files(const KubeconfigPlace& place) {
  if (!place.path.empty()) return std::vector{place.path};
  std::vector<std::string> files;
  const std::string list = Env(place, "KUBECONFIG");
  for (size_t start = 0; start <= list.size();) {
    const size_t end = std::min(list.find(':', start), list.size());
    std::string file = list.substr(start, end - start);
    if (!file.empty() && std::find(files.begin(), files.end(), file) == files.end())
      files.push_back(std::move(file));
    start = end + 1;
  }
  if (files.size() > kMaxFiles)
    return Fail(UsageError(fmt::format("KUBECONFIG names more than {} files", kMaxFiles)));
  if (!files.empty()) return files;
  const std::string home = Env(place, "HOME");
  if (home.empty())
    return Fail(UsageError("neither KUBECONFIG nor HOME is set: name a file with --kubeconfig"));
  return std::vector{home + "/.kube/config"};
}

std::string FileForChanges(const std::vector<std::string>& files) {
  const auto found = std::find_if(files.begin(), files.end(), Exists);
  return found == files.end() ? files.back() : *found;
}

// The document of a file; an empty map for an empty file.
Result<api::Object> ReadConfig(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxFileBytes));
  Result<std::vector<api::YamlDocument>> documents = api::ParseYaml(text);
  if (!documents) {
    return Fail(UsageError(
        fmt::format("error loading config file {}: {}", Quote(path), documents.error().message)));
  }
  if (documents->empty() || !documents->front().object || documents->front().object.root().IsNull())
    return api::Editor().Finish();
  const api::Object& object = documents->front().object;
  if (!object.root().IsMap() || (object["kind"] && object.kind() != "Config"))
    return Fail(
        UsageError(fmt::format("error loading config file {}: no kubeconfig", Quote(path))));
  return object;
}

void AddItems(const api::Object& config, const char* list, const char* inner,
              const std::string& folder, std::vector<Kubeconfig::Item>* items) {
  for (api::Value item : config[list].items()) {
    const std::string_view name = item["name"].AsString();
    if (Kubeconfig::Find(*items, name)) continue;
    items->push_back({std::string(name), api::CopyOf(item[inner]), folder});
  }
}

// Base64 data, or the file beside it, relative to the kubeconfig; empty if neither is there.
Result<std::string> DataOrFile(const Kubeconfig::Item& item, const char* data, const char* file) {
  const std::string_view text = item.value[data].AsString();
  if (!text.empty()) {
    Result<std::string> decoded = Base64Decode(text);
    if (!decoded)
      return Fail(UsageError(fmt::format("{} of {} is no base64", data, Quote(item.name))));
    return decoded;
  }
  std::string path(item.value[file].AsString());
  if (path.empty()) return std::string();
  if (path[0] != '/') path = item.folder + "/" + path;
  Result<std::string> content = ReadFile(path, kMaxFileBytes);
  if (!content) {
    return Fail(UsageError(fmt::format("unable to read {} {} for {} due to {}", file, path,
                                       item.name, content.error().message)));
  }
  return content;
}

Status AddUser(const Kubeconfig::Item& user, const Kubeconfig::Item& cluster,
               RemoteOptions* options) {
  if (user.value["auth-provider"]) {
    return Fail(UsageError(fmt::format(
        "user {} gets its credentials from an auth-provider, which Kubernetes has given up: use an "
        "exec plugin, a client certificate, token or tokenFile",
        Quote(user.name))));
  }
  options->token = user.value["token"].AsString();
  options->token_file = user.value["tokenFile"].AsString();
  // client-go: a token in the file wins until the file of tokens is read.
  if (!options->token_file.empty() && options->token_file[0] != '/')
    options->token_file = user.folder + "/" + options->token_file;
  options->username = user.value["username"].AsString();
  options->password = user.value["password"].AsString();
  options->impersonate_user = user.value["as"].AsString();
  for (api::Value group : user.value["as-groups"].items())
    options->impersonate_groups.emplace_back(group.AsString());
  ASSIGN_OR_RETURN(options->tls.cert_pem,
                   DataOrFile(user, "client-certificate-data", "client-certificate"));
  ASSIGN_OR_RETURN(options->tls.key_pem, DataOrFile(user, "client-key-data", "client-key"));
  if (options->tls.cert_pem.empty() != options->tls.key_pem.empty()) {
    return Fail(UsageError(
        fmt::format("client-key-data or client-key must be specified for {} to use the clientCert "
                    "authentication method.",
                    user.name)));
  }
  if (const api::Value plugin = user.value["exec"]) {
    Result<ExecCredential> credential =
        RunCredentialPlugin(plugin, user.folder, cluster.value.root());
    if (!credential) {
      return Fail(UsageError(fmt::format("getting credentials for user {}: {}", Quote(user.name),
                                         credential.error().message)));
    }
    if (!credential->token.empty()) options->token = credential->token;
    if (!credential->client_cert_pem.empty()) {
      options->tls.cert_pem = credential->client_cert_pem;
      options->tls.key_pem = credential->client_key_pem;
    }
  }
  return {};
}

// Holds "<file>.lock" as client-go does, so that kubectl, kind and we do not undo each other.
class FileLock {
 public:
  static Result<FileLock> Take(const std::string& file) {
    RETURN_IF_ERROR(MakeDirectories(FolderOf(file), kFolderMode));
    const std::string name = file + ".lock";
    for (int i = 0; i < kLockTries; ++i) {
      const int fd = open(name.c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0);
      if (fd >= 0) {
        close(fd);
        return FileLock(name);
      }
      if (errno != EEXIST) return Fail(FileError("open", name, errno));
      std::this_thread::sleep_for(kLockPause);
    }
    return Fail(UsageError(
        fmt::format("another program is changing {}: if there is none, remove {}", file, name)));
  }
  FileLock(FileLock&& other) noexcept : name_(std::exchange(other.name_, {})) {}
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock() {
    if (!name_.empty()) unlink(name_.c_str());
  }

 private:
  explicit FileLock(std::string name) : name_(std::move(name)) {}
  std::string name_;
};

Status WriteConfig(const std::string& path, const api::Object& config) {
  std::string text;
  api::WriteYaml(config.root(), text);
  return WriteFileAtomic(path, text, kFileMode);
}

// The item of `list` with this name, made at its end if there is none.
api::Mut ItemNamed(api::Mut list, std::string_view name) {
  for (size_t i = 0; i < list.size(); ++i)
    if (list.at(i)["name"].AsString() == name) return list.at(i);
  const api::Mut made = list.Append();
  made.Set("name", name);
  return made;
}

void PutEntry(const ContextEntry& entry, api::Editor* edit) {
  const api::Mut root = edit->Root();
  root.Set("apiVersion", "v1");
  root.Set("kind", "Config");

  const api::Mut cluster_item = ItemNamed(root["clusters"], entry.name);
  cluster_item.Erase("cluster");
  const api::Mut cluster = cluster_item["cluster"];
  cluster.Set("server", entry.server);
  if (!entry.ca_pem.empty()) cluster.Set("certificate-authority-data", Base64(entry.ca_pem));
  if (!entry.tls_server_name.empty()) cluster.Set("tls-server-name", entry.tls_server_name);

  const api::Mut user_item = ItemNamed(root["users"], entry.name);
  user_item.Erase("user");
  const api::Mut user = user_item["user"];
  user.SetMap();
  if (!entry.client_cert_pem.empty()) {
    user.Set("client-certificate-data", Base64(entry.client_cert_pem));
    user.Set("client-key-data", Base64(entry.client_key_pem));
  }
  if (!entry.token.empty()) user.Set("token", entry.token);

  const api::Mut context_item = ItemNamed(root["contexts"], entry.name);
  context_item.Erase("context");
  context_item["context"].Set("cluster", entry.name);
  context_item["context"].Set("user", entry.name);
  root.Set("current-context", entry.name);
}

// True if something was taken out.
bool TakeOut(std::string_view name, api::Editor* edit) {
  bool changed = false;
  for (const char* list_name : {"clusters", "users", "contexts"}) {
    if (!edit->Root().Has(list_name)) continue;
    const api::Mut list = (*edit)[list_name];
    for (size_t i = list.size(); i-- > 0;) {
      if (list.at(i)["name"].AsString() != name) continue;
      list.EraseAt(i);
      changed = true;
    }
  }
  if (edit->Root().Has("current-context") && (*edit)["current-context"].AsString() == name) {
    edit->Root().Set("current-context", "");
    changed = true;
  }
  return changed;
}

}  // namespace

const Kubeconfig::Item* Kubeconfig::Find(const std::vector<Item>& items, std::string_view name) {
  const auto found =
      std::find_if(items.begin(), items.end(), [&](const Item& item) { return item.name == name; });
  return found == items.end() ? nullptr : &*found;
}

Result<Kubeconfig> LoadKubeconfig(const KubeconfigPlace& place) {
  ASSIGN_OR_RETURN(const std::vector<std::string> files, Files(place));
  Kubeconfig config;
  for (const std::string& file : files) {
    if (place.path.empty() && access(file.c_str(), F_OK) != 0 && errno == ENOENT) continue;
    Result<api::Object> object = ReadConfig(file);
    if (!object) return Fail(UsageError(object.error().message));
    const std::string folder = FolderOf(file);
    AddItems(*object, "clusters", "cluster", folder, &config.clusters);
    AddItems(*object, "users", "user", folder, &config.users);
    AddItems(*object, "contexts", "context", folder, &config.contexts);
    if (config.current_context.empty())
      config.current_context = (*object)["current-context"].AsString();
    config.files.push_back(file);
  }
  return config;
}

Result<RemoteOptions> OptionsFor(const Kubeconfig& config, std::string_view context_name) {
  const std::string name(context_name.empty() ? config.current_context : context_name);
  if (name.empty()) {
    return Fail(UsageError(config.files.empty()
                               ? "no kubeconfig was found: name one with --kubeconfig"
                               : "no context is chosen: name one with --context"));
  }
  const Kubeconfig::Item* context = Kubeconfig::Find(config.contexts, name);
  if (!context) return Fail(UsageError(fmt::format("context {} does not exist", Quote(name))));
  const std::string_view cluster_name = context->value["cluster"].AsString();
  const Kubeconfig::Item* cluster = Kubeconfig::Find(config.clusters, cluster_name);
  if (!cluster)
    return Fail(UsageError(fmt::format("cluster {} does not exist", Quote(cluster_name))));

  RemoteOptions options;
  options.server = cluster->value["server"].AsString();
  if (options.server.empty()) {
    return Fail(UsageError(
        fmt::format("invalid configuration: no server found for cluster {}", Quote(cluster_name))));
  }
  if (!cluster->value["proxy-url"].AsString().empty()) {
    return Fail(
        UsageError(fmt::format("cluster {} is behind a proxy (proxy-url), which sextant "
                               "does not support",
                               Quote(cluster_name))));
  }
  options.tls.server_name = cluster->value["tls-server-name"].AsString();
  options.tls.insecure_skip_verify = cluster->value["insecure-skip-tls-verify"].AsBool();
  ASSIGN_OR_RETURN(options.tls.ca_pem,
                   DataOrFile(*cluster, "certificate-authority-data", "certificate-authority"));
  const std::string_view user_name = context->value["user"].AsString();
  if (user_name.empty()) return options;  // anonymous
  const Kubeconfig::Item* user = Kubeconfig::Find(config.users, user_name);
  if (!user) return Fail(UsageError(fmt::format("auth info {} does not exist", Quote(user_name))));
  RETURN_IF_ERROR(AddUser(*user, *cluster, &options));
  return options;
}

std::string NamespaceFor(const Kubeconfig& config, std::string_view context_name) {
  const Kubeconfig::Item* context = Kubeconfig::Find(
      config.contexts, context_name.empty() ? config.current_context : context_name);
  const std::string_view ns = context ? context->value["namespace"].AsString() : "";
  return ns.empty() ? "default" : std::string(ns);
}

// client-go rest/config.go, InClusterConfig.
Result<RemoteOptions> InClusterOptions(const KubeconfigPlace& place) {
  const std::string host = Env(place, "KUBERNETES_SERVICE_HOST");
  const std::string port = Env(place, "KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    Error error = UsageError(
        "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and "
        "KUBERNETES_SERVICE_PORT must be defined");
    error.code = 404;
    return Fail(std::move(error));
  }
  RemoteOptions options;
  const bool v6 = host.find(':') != std::string::npos;
  options.server = fmt::format("https://{}:{}", v6 ? "[" + host + "]" : host, port);
  options.token_file = fmt::format("{}/token", kServiceAccount);
  ASSIGN_OR_RETURN(options.tls.ca_pem,
                   ReadFile(fmt::format("{}/ca.crt", kServiceAccount), kMaxFileBytes));
  return options;
}

Result<std::string> MergeContext(const ContextEntry& entry, const KubeconfigPlace& place) {
  ASSIGN_OR_RETURN(const std::vector<std::string> files, Files(place));
  const std::string file = FileForChanges(files);
  ASSIGN_OR_RETURN(const FileLock lock, FileLock::Take(file));
  api::Object before;
  if (Exists(file)) {
    ASSIGN_OR_RETURN(before, ReadConfig(file));
  }
  api::Editor edit = before ? api::Editor(before) : api::Editor();
  PutEntry(entry, &edit);
  RETURN_IF_ERROR(WriteConfig(file, std::move(edit).Finish()));
  return file;
}

Status RemoveContext(std::string_view name, const KubeconfigPlace& place) {
  ASSIGN_OR_RETURN(const std::vector<std::string> files, Files(place));
  for (const std::string& file : files) {
    if (!Exists(file)) continue;
    ASSIGN_OR_RETURN(const FileLock lock, FileLock::Take(file));
    ASSIGN_OR_RETURN(api::Object before, ReadConfig(file));
    api::Editor edit(std::move(before));
    if (TakeOut(name, &edit)) RETURN_IF_ERROR(WriteConfig(file, std::move(edit).Finish()));
  }
  return {};
}

std::string KubeconfigText(const ContextEntry& entry) {
  api::Editor edit;
  PutEntry(entry, &edit);
  std::string text;
  api::WriteYaml(std::move(edit).Finish().root(), text);
  return text;
}

}  // namespace sextant::client
