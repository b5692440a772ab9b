#include "server/impersonation.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "api/names.h"
#include "base/ascii.h"
#include "base/quote.h"

namespace sextant::server {
namespace {

constexpr std::string_view kReviews = "authentication.k8s.io";
constexpr std::string_view kNodePrefix = "system:node:";
constexpr std::string_view kNodes = "system:nodes";
constexpr std::string_view kNodeNameKey = "authentication.kubernetes.io/node-name";
constexpr size_t kMany = 4;  // so many groups or values are first asked for at once

std::string GoStrings(const std::vector<std::string>& values) {
  if (values.empty()) return "[]string(nil)";
  std::string out;
  for (const std::string& value : values) out += (out.empty() ? "" : ", ") + Quote(value);
  return "[]string{" + out + "}";
}

// A user as Go's %#v prints it.
std::string GoPrint(const User& user) {
  std::string extra;
  for (const auto& [key, values] : user.extra) {
    extra += (extra.empty() ? "" : ", ") + Quote(key) + ":" + GoStrings(values);
  }
  return fmt::format("&user.DefaultInfo{{Name:{}, UID:{}, Groups:{}, Extra:map[string][]string{}}}",
                     Quote(user.name), Quote(user.uid), GoStrings(user.groups),
                     extra.empty() ? "(nil)" : "{" + extra + "}");
}

// Who the headers name, as they stand; no name: nobody.
Result<User> WantedUser(const net::Request& request) {
  constexpr std::string_view kExtra = "impersonate-extra-";
  User user;
  user.name = request.headers.Get("impersonate-user");
  user.uid = request.headers.Get("impersonate-uid");
  for (std::string_view group : request.headers.GetAll("impersonate-group")) {
    user.groups.emplace_back(group);
  }
  for (const net::Header& header : request.headers) {
    if (!header.name.starts_with(kExtra)) continue;
    ASSIGN_OR_RETURN(std::string key,
                     net::PercentDecode(std::string_view(header.name).substr(kExtra.size())));
    user.extra[std::move(key)].push_back(header.value);
  }
  if (user.name.empty() && (!user.groups.empty() || !user.extra.empty() || !user.uid.empty())) {
    return Fail(
        BadRequest(fmt::format("requested {} without impersonating a user name", GoPrint(user))));
  }
  return user;
}

// Where a user's name says that it is a node or an account.
struct Account {
  std::string ns;
  std::string name;
};
std::optional<Account> AccountOf(std::string_view user) {
  if (!user.starts_with(kServiceAccountPrefix)) return {};
  user.remove_prefix(kServiceAccountPrefix.size());
  const size_t colon = user.find(':');
  if (colon == std::string_view::npos) return {};
  const Account account{std::string(user.substr(0, colon)), std::string(user.substr(colon + 1))};
  if (!api::NameIsDnsLabel(account.ns, false).empty()) return {};
  if (!api::NameIsDnsSubdomain(account.name, false).empty()) return {};
  return account;
}

std::optional<std::string> NodeOf(std::string_view user) {
  if (!user.starts_with(kNodePrefix)) return {};
  user.remove_prefix(kNodePrefix.size());
  if (!api::NameIsDnsSubdomain(user, false).empty()) return {};
  return std::string(user);
}

bool OnlyNamed(const User& user) {
  return user.uid.empty() && user.groups.empty() && user.extra.empty();
}

bool IsMany(const User& user) {
  size_t values = 0;
  for (const auto& [key, list] : user.extra) values += list.size();
  return user.extra.size() >= kMany || values >= kMany;
}

// One way to impersonate one user, tried by one who asks.
class Attempt {
 public:
  // An empty mode: legacy.
  Attempt(const Pipeline& pipeline, const Operation& asked, const User& wanted,
          std::string_view mode)
      : pipeline_(pipeline), asked_(asked), wanted_(wanted), mode_(mode) {}

  // The user with the groups that come by itself.
  Result<User> Try() const {
    if (!mode_.empty()) {
      Operation on;
      on.user = asked_.user;
      on.info = asked_.info;
      on.info.verb = fmt::format("impersonate-on:{}:{}", mode_, asked_.info.verb);
      RETURN_IF_ERROR(pipeline_.Authorize(on));
    }
    User user = wanted_;
    RETURN_IF_ERROR(MayName(user));
    if (!user.uid.empty()) RETURN_IF_ERROR(May(kReviews, "uids", {}, {}, user.uid));
    RETURN_IF_ERROR(MayGroups());
    RETURN_IF_ERROR(MayExtra());
    if (user.name == kAnonymous) {
      AddGroup(user, kUnauthenticated);
    } else if (!user.InGroup(kUnauthenticated)) {
      AddGroup(user, kAuthenticated);
    }
    return user;
  }

 private:
  static void AddGroup(User& user, std::string_view group) {
    if (!user.InGroup(group)) user.groups.emplace_back(group);
  }

  Operation Asks(std::string_view group, std::string_view resource, std::string_view subresource,
                 std::string_view ns, std::string_view name) const {
    Operation op;
    op.user = asked_.user;
    op.info.is_resource = true;
    op.info.verb = mode_.empty() ? "impersonate" : fmt::format("impersonate:{}", mode_);
    op.info.group = group;
    op.info.version = "v1";
    op.info.ns = ns;
    op.info.resource = resource;
    op.info.subresource = subresource;
    op.info.name = name;
    return op;
  }

  Status May(std::string_view group, std::string_view resource, std::string_view subresource,
             std::string_view ns, std::string_view name) const {
    return pipeline_.Authorize(Asks(group, resource, subresource, ns, name));
  }

  Status Refuse(std::string_view resource, std::string_view name, std::string_view why) const {
    const Operation op = Asks(kReviews, resource, {}, {}, name);
    return Fail(ForbiddenError(op.user, op.info, why));
  }

  std::string_view NamesGroup() const { return mode_.empty() ? "" : kReviews; }

  Status MayName(User& user) const {
    const auto node = mode_.empty() ? std::nullopt : NodeOf(user.name);
    if (node) {
      user.groups = {std::string(kNodes)};
      return May(kReviews, "nodes", {}, {}, mode_ == "associated-node" ? "*" : *node);
    }
    if (const auto account = AccountOf(user.name)) {
      if (user.groups.empty()) {
        user.groups = {std::string(kServiceAccountGroups),
                       fmt::format("{}:{}", kServiceAccountGroups, account->ns)};
      }
      return May(NamesGroup(), "serviceaccounts", {}, account->ns, account->name);
    }
    return May(NamesGroup(), "users", {}, {}, user.name);
  }

  Status MayGroups() const {
    if (!mode_.empty()) {
      for (const std::string& group : wanted_.groups) {
        if (group.empty()) {
          return Refuse("groups", "", "impersonating the empty string group is not allowed");
        }
        if (group == kMasters) {
          return Refuse("groups", group, "impersonating the system:masters group is not allowed");
        }
      }
      if (wanted_.groups.size() >= kMany && May(kReviews, "groups", {}, {}, "*")) return {};
    }
    for (const std::string& group : wanted_.groups) {
      RETURN_IF_ERROR(May(NamesGroup(), "groups", {}, {}, group));
    }
    return {};
  }

  Status MayExtra() const {
    if (!mode_.empty()) {
      RETURN_IF_ERROR(CheckExtra());
      if (IsMany(wanted_) && May(kReviews, "userextras", "*", {}, "*")) return {};
    }
    for (const auto& [key, values] : wanted_.extra) {
      for (const std::string& value : values) {
        RETURN_IF_ERROR(May(kReviews, "userextras", key, {}, value));
      }
    }
    return {};
  }

  Status CheckExtra() const {
    for (const auto& [key, values] : wanted_.extra) {
      if (key.empty()) {
        return Refuse("userextras", "",
                      "impersonating the empty string key in extra is not allowed");
      }
      if (key != AsciiLower(key)) {
        return Refuse("userextras", "",
                      fmt::format("impersonating a non-lowercase key in extra is not allowed: {}",
                                  Quote(key)));
      }
      if (std::ranges::find(values, "") != values.end()) {
        return Refuse("userextras", "",
                      "impersonating the empty string value in extra is not allowed");
      }
    }
    return {};
  }

  const Pipeline& pipeline_;
  const Operation& asked_;
  const User& wanted_;
  const std::string_view mode_;
};

// The account of a Pod may be the node that the Pod runs on.
bool IsOnNode(const User& asking, std::string_view node) {
  if (!AccountOf(asking.name)) return false;
  const auto at = asking.extra.find(std::string(kNodeNameKey));
  return at != asking.extra.end() && at->second.size() == 1 && at->second[0] == node;
}

// The constrained modes that fit, the narrowest first.
std::vector<std::string_view> ModesFor(const User& asking, const User& wanted) {
  std::vector<std::string_view> modes;
  if (const auto node = NodeOf(wanted.name)) {
    if (!OnlyNamed(wanted)) return modes;
    if (IsOnNode(asking, *node)) modes.emplace_back("associated-node");
    modes.emplace_back("arbitrary-node");
  } else if (AccountOf(wanted.name)) {
    if (OnlyNamed(wanted)) modes.emplace_back("serviceaccount");
  } else {
    modes.emplace_back("user-info");
  }
  return modes;
}

}  // namespace

Result<std::optional<User>> Impersonate(const net::Request& request, const Operation& asked,
                                        const Pipeline& pipeline) {
  ASSIGN_OR_RETURN(const User wanted, WantedUser(request));
  if (wanted.name.empty()) return std::optional<User>();
  std::vector<std::string_view> modes = ModesFor(asked.user, wanted);
  modes.emplace_back("");
  std::optional<Error> refused;
  for (std::string_view mode : modes) {
    auto user = Attempt(pipeline, asked, wanted, mode).Try();
    if (user) return std::optional<User>(*std::move(user));
    if (!refused) refused = std::move(user).error();
  }
  return Fail(*std::move(refused));
}

}  // namespace sextant::server
