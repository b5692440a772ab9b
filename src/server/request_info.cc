#include "server/request_info.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "api/selector.h"
#include "base/ascii.h"
#include "base/check.h"
#include "net/http.h"

namespace sextant::server {
namespace {

constexpr size_t kMaxPathParts = 64;

std::vector<std::string> SplitPath(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty() && path.front() == '/') path.remove_prefix(1);
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  while (!path.empty() && parts.size() < kMaxPathParts) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    auto decoded = net::PercentDecode(part);
    parts.push_back(decoded ? *std::move(decoded) : std::string(part));
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  return parts;
}

std::string_view VerbOf(std::string_view method) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kVerbs = {
      {{"POST", "create"},
       {"GET", "get"},
       {"HEAD", "get"},
       {"PUT", "update"},
       {"PATCH", "patch"},
       {"DELETE", "delete"}}};
  for (const auto& [name, verb] : kVerbs)
    if (name == method) return verb;
  return "";
}

// What may follow /namespaces/{name}/ and still be about the namespace itself.
bool IsNamespaceSubresource(std::string_view part) {
  return part == "status" || part == "finalize";
}

Result<bool> ParseBool(std::string_view name, std::string_view text) {
  // apimachinery's Convert_Slice_string_To_bool: only "false" and "0" are false.
  (void)name;
  return !(text == "false" || text == "0");
}

Result<int64_t> ParseInt(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) {
    return Fail(
        BadRequest(fmt::format("strconv.ParseInt: parsing \"{}\": value out of range", text)));
  }
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
    return Fail(BadRequest(fmt::format("strconv.ParseInt: parsing \"{}\": invalid syntax", text)));
  }
  return value;
}

Status SetOption(std::string_view name, const std::string& value, Options& out) {
  if (name == "labelSelector")
    out.label_selector = value;
  else if (name == "fieldSelector")
    out.field_selector = value;
  else if (name == "resourceVersion")
    out.resource_version = value;
  else if (name == "resourceVersionMatch")
    out.resource_version_match = value;
  else if (name == "continue")
    out.continue_token = value;
  else if (name == "fieldManager")
    out.field_manager = out.field_manager_given = value;
  else if (name == "fieldValidation") {
    if (!value.empty()) out.field_validation = value;
  } else if (name == "limit") {
    ASSIGN_OR_RETURN(out.limit, ParseInt(value));
  } else if (name == "timeoutSeconds") {
    ASSIGN_OR_RETURN(out.timeout_s, ParseInt(value));
  } else if (name == "gracePeriodSeconds") {
    ASSIGN_OR_RETURN(out.grace_period_s, ParseInt(value));
  } else if (name == "propagationPolicy")
    out.propagation_policy = value;
  else if (name == "orphanDependents") {
    ASSIGN_OR_RETURN(out.orphan_dependents, ParseBool(name, value));
  } else if (name == "watch") {
    ASSIGN_OR_RETURN(out.watch, ParseBool(name, value));
  } else if (name == "allowWatchBookmarks") {
    ASSIGN_OR_RETURN(out.bookmarks, ParseBool(name, value));
  } else if (name == "sendInitialEvents") {
    ASSIGN_OR_RETURN(out.send_initial_events, ParseBool(name, value));
  } else if (name == "force") {
    ASSIGN_OR_RETURN(out.force, ParseBool(name, value));
    out.force_set = true;
  } else if (name == "pretty") {
    ASSIGN_OR_RETURN(out.pretty, ParseBool(name, value));
  } else if (name == "dryRun")
    out.dry_run_values.push_back(value);
  return {};
}

}  // namespace

RequestInfo ParseRequest(std::string_view method, std::string_view path) {
  RequestInfo info;
  info.path = path;
  info.verb = AsciiLower(method);
  std::vector<std::string> parts = SplitPath(path);
  size_t at = 0;
  if (parts.size() < 3 || (parts[0] != "api" && parts[0] != "apis")) return info;
  info.prefix = parts[at++];
  if (info.prefix == "apis") {
    if (parts.size() < 4) return info;
    info.group = parts[at++];
  }
  info.is_resource = true;
  info.version = parts[at++];
  info.verb = VerbOf(method);
  if ((parts[at] == "watch" || parts[at] == "proxy") && at + 1 < parts.size()) {
    info.verb = parts[at++];
  }
  if (parts[at] == "namespaces" && at + 1 < parts.size()) {
    info.ns = parts[at + 1];
    if (at + 2 < parts.size() && !IsNamespaceSubresource(parts[at + 2])) at += 2;
  }
  const size_t left = parts.size() - at;
  CHECK(left >= 1);
  info.resource = parts[at];
  if (left >= 2) info.name = parts[at + 1];
  if (left >= 3) info.subresource = parts[at + 2];
  for (size_t i = at + 3; i < parts.size(); ++i) info.rest.push_back(parts[i]);
  return info;
}

void ResolveVerb(const Options& options, RequestInfo& info) {
  if (!info.is_resource || !info.name.empty()) return;
  if (info.verb == "get") {
    info.verb = options.watch ? "watch" : "list";
  } else if (info.verb == "delete") {
    info.verb = "deletecollection";
  } else {
    return;
  }
  NoteFieldSelector(options.field_selector, info);
}

void NoteFieldSelector(std::string_view selector, RequestInfo& info) {
  info.field_selector = selector;
  if (info.verb == "deletecollection") return;
  // One exact metadata.name makes the request one about that object, if it can be a name at all.
  const auto parsed = api::FieldSelector::Parse(selector);
  const std::string_view name = parsed ? parsed->Exact("metadata.name") : "";
  if (name != "." && name != ".." && name.find_first_of("/%") == std::string_view::npos) {
    info.name = name;
  }
}

Result<Options> ParseOptions(std::string_view query) {
  Options out;
  ASSIGN_OR_RETURN(auto parameters, net::ParseQuery(query));
  for (const auto& [name, value] : parameters) RETURN_IF_ERROR(SetOption(name, value, out));
  return out;
}

}  // namespace sextant::server
