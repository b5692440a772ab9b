// One API request in the pipeline's own terms: what HTTP requests and LocalClient calls both
// become. Plain data; made on a worker, moved along.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "api/patch.h"
#include "api/schema.h"
#include "base/status.h"
#include "client/client.h"

namespace sextant::server {

// Who asks. `extra` as in authentication/v1 UserInfo.
// Names that Kubernetes gives a meaning (apiserver's authentication/user).
inline constexpr std::string_view kAnonymous = "system:anonymous";
inline constexpr std::string_view kAuthenticated = "system:authenticated";
inline constexpr std::string_view kUnauthenticated = "system:unauthenticated";
inline constexpr std::string_view kMasters = "system:masters";
inline constexpr std::string_view kServiceAccountPrefix = "system:serviceaccount:";
inline constexpr std::string_view kServiceAccountGroups = "system:serviceaccounts";

struct User {
  std::string name;
  std::string uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;

  bool InGroup(std::string_view group) const;
};

// What a path asks for, as apiserver's RequestInfo: the terms of authorization.
struct RequestInfo {
  bool is_resource = false;
  std::string path;
  std::string verb;  // get list watch create update patch delete deletecollection; else the method
  std::string prefix;  // "api" or "apis"
  std::string group;
  std::string version;
  std::string ns;
  std::string resource;
  std::string subresource;
  std::string name;               // for list and watch: from a field selector metadata.name=x
  std::string field_selector;     // of list, watch and deletecollection, as given
  std::vector<std::string> rest;  // path parts after the subresource (proxy)
};

// The query parameters that the pipeline knows; anything else in the query is ignored, as the real
// server does.
struct Options {
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;
  std::string resource_version_match;
  std::string continue_token;
  int64_t limit = 0;
  bool watch = false;
  bool bookmarks = false;
  std::optional<bool> send_initial_events;
  int64_t timeout_s = 0;
  std::string field_manager;  // the one given, else what the user agent says
  std::string field_manager_given;
  std::string field_validation = "Warn";    // Ignore, Warn, Strict
  std::vector<std::string> dry_run_values;  // "All" is the only one there is
  bool force = false;
  bool force_set = false;
  bool pretty = false;
  // delete only
  std::optional<int64_t> grace_period_s;
  std::string propagation_policy;
  std::optional<bool> orphan_dependents;

  bool dry_run() const { return !dry_run_values.empty(); }
};

struct Operation {
  User user;
  RequestInfo info;
  Options options;
  // Keeps `resource` and `subresource` alive.
  std::shared_ptr<const api::Registry> registry;
  const api::Resource* resource = nullptr;
  const api::Subresource* subresource = nullptr;  // nullptr for the resource itself
  // The subresource through which the resource itself is written (scale), for managedFields.
  std::string_view part;

  // create, update: the object in its request version, decoded against its schema; delete,
  // deletecollection: DeleteOptions or empty.
  api::Object body;
  std::string patch;   // patch: JSON
  bool apply = false;  // a patch that is a server-side apply: its configuration is `body`
  api::PatchType patch_type = api::PatchType::kMerge;
  std::vector<std::string> warnings;
  // The HTTP side has asked the authorizer already.
  bool authorized = false;
};

// A page of a list, not yet encoded.
struct ListOutcome {
  std::vector<api::Object> items;
  std::string resource_version;
  std::string continue_token;
  std::optional<int64_t> remaining;
};

struct Outcome {
  int code = 200;
  api::Object object;                     // one object, or a Status
  std::unique_ptr<ListOutcome> list;      // for list
  const api::Message* message = nullptr;  // schema of `object` or of the items
  std::vector<std::string> warnings;
};

using Respond = std::move_only_function<void(Result<Outcome>)>;

}  // namespace sextant::server
