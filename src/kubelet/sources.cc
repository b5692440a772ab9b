#include "kubelet/sources.h"

#include "base/base64.h"
#include "kubelet/text_error.h"

namespace sextant::kubelet {
namespace {

// Counts the answers that are still to come.
struct Fetching {
  Sources sources;
  size_t open = 0;
  std::move_only_function<void(std::shared_ptr<const Sources>)> done;

  void Arrived(std::map<std::string, Result<api::Object>>& into, const std::string& name,
               Result<api::Object> object) {
    into.emplace(name, std::move(object));
    if (--open == 0) done(std::make_shared<const Sources>(std::move(sources)));
  }
};

}  // namespace

Result<api::Object> FindSource(const std::map<std::string, Result<api::Object>>& sources,
                               const std::string& name, bool optional) {
  const auto found = sources.find(name);
  if (found == sources.end()) return Fail(TextError("not fetched: " + name));
  if (found->second) return *found->second;
  if (optional && found->second.error().Is("NotFound")) return api::Object();
  return Fail(found->second.error());
}

std::string DecodeSecret(api::Value base64) { return Base64Decode(base64.AsString()).value_or(""); }

void FetchSources(client::Client& client, const std::string& ns, SourceNames names,
                  std::move_only_function<void(std::shared_ptr<const Sources>)> done) {
  const auto fetching = std::make_shared<Fetching>();
  fetching->open = names.config_maps.size() + names.secrets.size();
  fetching->done = std::move(done);
  if (fetching->open == 0) {
    client.executor().Post([fetching] {
      fetching->done(std::make_shared<const Sources>(std::move(fetching->sources)));
    });
    return;
  }
  for (const std::string& name : names.config_maps) {
    client.Get(client::kConfigMaps, {ns, name}, [fetching, name](Result<api::Object> object) {
      fetching->Arrived(fetching->sources.config_maps, name, std::move(object));
    });
  }
  for (const std::string& name : names.secrets) {
    client.Get(client::kSecrets, {ns, name}, [fetching, name](Result<api::Object> object) {
      fetching->Arrived(fetching->sources.secrets, name, std::move(object));
    });
  }
}

}  // namespace sextant::kubelet
