#include "server/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/conversion.h"
#include "api/custom_kind.h"
#include "api/json.h"
#include "api/names.h"
#include "api/protobuf.h"
#include "api/rules.h"
#include "api/yaml.h"
#include "base/quote.h"
#include "net/tls.h"

namespace sextant::server {
namespace {

using api::Object;

constexpr size_t kMaxBody = 3 << 20;
constexpr size_t kSummary = 30;
constexpr std::string_view kUnknownFormat =
    "the body of the request was in an unknown format - accepted media types include: ";
constexpr std::string_view kObjectTypes =
    "application/json, application/yaml, application/vnd.kubernetes.protobuf";

std::string_view MediaOf(const net::Request& request) {
  std::string_view type = request.headers.Get("content-type");
  type = type.substr(0, type.find(';'));
  while (!type.empty() && type.back() == ' ') type.remove_suffix(1);
  return type;
}

std::string Summary(std::string_view body) {
  if (body.empty()) return "<empty>";
  const bool long_body = body.size() > kSummary;
  const std::string_view head = body.substr(0, kSummary);
  return (body[0] == '{' ? std::string(head) : net::Hex(head)) + (long_body ? " ..." : "");
}

Error DecodeError(const BodyKind& kind, const api::TypeMeta& meta, std::string_view body,
                  std::string_view why) {
  if (kind.options) return BadRequest(why);
  if (!meta.kind.empty()) {
    return BadRequest(fmt::format("{} in version {} cannot be handled as a {}: {}", meta.kind,
                                  Quote(api::GroupVersion::Of(meta.api_version).version),
                                  kind.gvk.kind, why));
  }
  return BadRequest(fmt::format("the object provided is unrecognized (must be of type {}): {} ({})",
                                kind.gvk.kind, why, Summary(body)));
}

std::string ApiVersionOf(const api::GroupVersionKind& gvk) {
  return api::GroupVersion{gvk.group, gvk.version}.ToString();
}

// What the body says it is, against what this path takes. Left out is as good as right.
Status CheckType(const Operation& op, const BodyKind& kind, const api::TypeMeta& meta,
                 std::string_view body) {
  const std::string expected = ApiVersionOf(kind.gvk);
  const bool version_ok = meta.api_version.empty() || meta.api_version == expected;
  const bool kind_ok = meta.kind.empty() || meta.kind == kind.gvk.kind;
  if (version_ok && kind_ok) return {};
  if (version_ok && kind.message->custom) return {};  // validation says what it must be
  const std::string said_version = meta.api_version.empty() ? expected : meta.api_version;
  const std::string said_kind = meta.kind.empty() ? std::string(kind.gvk.kind) : meta.kind;
  const api::GroupVersion gv = api::GroupVersion::Of(said_version);
  if (const api::Complaints why = api::IsGroupVersion(said_version); !why.empty()) {
    return Fail(DecodeError(kind, {}, body, why.front()));
  }
  const api::GroupVersionKind said{gv.group, gv.version, said_kind};
  if (kind.options || !op.registry->FindKindMessage(gv, said_kind)) {
    return Fail(DecodeError(kind, {said_version, said_kind}, body, api::NoKindRegistered(said)));
  }
  if (kind_ok) {
    return Fail(BadRequest(
        fmt::format("the API version in the data ({}) does not match the expected API version ({})",
                    said_version, expected)));
  }
  return Fail(
      DecodeError(kind, {said_version, said_kind}, body, api::UnknownConversion(said, kind.gvk)));
}

Status ReportStrict(const Operation& op, const BodyKind& kind, const api::TypeMeta& meta,
                    std::string_view body, const api::StrictReport& strict,
                    std::vector<std::string>& warnings) {
  if (strict.errors.empty()) return {};
  if (op.options.field_validation == "Strict") {
    return Fail(
        DecodeError(kind, meta, body,
                    fmt::format("strict decoding error: {}", fmt::join(strict.errors, ", "))));
  }
  // A warning is one line: of several the last, which says what it is.
  for (std::string_view text : strict.errors) {
    text = text.substr(text.rfind('\n') + 1);
    warnings.emplace_back(text.substr(std::min(text.find_first_not_of(' '), text.size())));
  }
  return {};
}

Result<Object> DecodeText(const Operation& op, const BodyKind& kind, std::string_view body,
                          bool yaml, std::vector<std::string>& warnings) {
  std::string json;
  api::StrictReport strict;
  const bool report = op.options.field_validation != "Ignore" && !kind.options;
  if (yaml) {
    auto documents = api::ParseYaml(body, {.strict = &strict, .first_only = true});
    if (!documents) return Fail(DecodeError(kind, {}, body, documents.error().message));
    json = documents->empty() ? "null" : api::ToJson(documents->front().object.root());
    body = json;
  }
  auto meta = api::PeekTypeMeta(body);
  if (!meta) return Fail(DecodeError(kind, {}, body, meta.error().message));
  meta->api_version = api::ReadAs(meta->api_version, meta->kind);
  RETURN_IF_ERROR(CheckType(op, kind, *meta, body));
  const api::TypeMeta said{meta->api_version.empty() ? ApiVersionOf(kind.gvk) : meta->api_version,
                           meta->kind.empty() ? std::string(kind.gvk.kind) : meta->kind};
  auto object = api::DecodeJson(body, *kind.message, {.strict = report ? &strict : nullptr});
  if (!object) return Fail(DecodeError(kind, said, body, object.error().message));
  if (kind.message->custom) {
    object = api::ReadCustom(*api::AsCustom(*op.resource),
                             api::WithTypeMeta(*std::move(object), said, *kind.message), strict);
    if (!object) return Fail(DecodeError(kind, said, body, object.error().message));
  }
  if (!report) strict.errors.clear();  // YAML's parser and schemas tell them all the same
  RETURN_IF_ERROR(ReportStrict(op, kind, said, body, strict, warnings));
  return api::WithTypeMeta(*std::move(object), said, *kind.message);
}

Result<Object> DecodeBinary(const Operation& op, const BodyKind& kind, std::string_view body) {
  auto envelope = api::OpenProtobuf(body);
  if (!envelope) return Fail(DecodeError(kind, {}, body, envelope.error().message));
  RETURN_IF_ERROR(CheckType(op, kind, envelope->meta, body));
  api::TypeMeta meta = envelope->meta;
  if (meta.kind.empty()) meta = {ApiVersionOf(kind.gvk), std::string(kind.gvk.kind)};
  auto object = api::DecodeProtobuf(envelope->raw, *kind.message, meta);
  if (!object) return Fail(DecodeError(kind, meta, body, object.error().message));
  const api::TypeMeta type{ApiVersionOf(kind.gvk), std::string(kind.gvk.kind)};
  return api::WithTypeMeta(*std::move(object), type, *kind.message);
}

struct PatchMedia {
  std::string_view type;
  api::PatchType patch;
};
constexpr std::array<PatchMedia, 3> kPatchTypes = {
    {{"application/json-patch+json", api::PatchType::kJson},
     {"application/merge-patch+json", api::PatchType::kMerge},
     {"application/strategic-merge-patch+json", api::PatchType::kStrategic}}};

// Server-side apply: the configuration is YAML (or JSON, which is YAML too).
Status DecodeApply(const net::Request& request, Operation& op) {
  api::FieldErrors errors;
  if (op.options.field_manager_given.empty()) {
    errors.Required("fieldManager", "is required for apply patch");
  }
  ValidateWriteOptions(op.options, errors);
  if (!errors.empty()) return Fail(Invalid("meta.k8s.io", "PatchOptions", "", errors.Take()));
  auto documents = api::ParseYaml(request.body, {.first_only = true});
  if (!documents) {
    return Fail(BadRequest(fmt::format("error decoding YAML: error converting YAML to JSON: {}",
                                       documents.error().message)));
  }
  if (!documents->empty()) op.body = documents->front().object;
  return {};
}

Status DecodePatch(const net::Request& request, Operation& op) {
  const std::string_view media = MediaOf(request);
  op.apply = media == "application/apply-patch+yaml";
  if (op.apply) return DecodeApply(request, op);
  const PatchMedia* found = nullptr;
  // Nobody knows the merge keys of a custom resource.
  const bool custom = op.resource->message->custom;
  for (const PatchMedia& type : kPatchTypes)
    if (type.type == media && !(custom && type.patch == api::PatchType::kStrategic)) found = &type;
  if (!found) {
    if (custom) {
      return Fail(UnsupportedMediaType(
          fmt::format("{}application/json-patch+json, application/merge-patch+json, "
                      "application/apply-patch+yaml",
                      kUnknownFormat)));
    }
    // The real server's router does not let other types through to the kinds it was built with.
    Error error = UnsupportedMediaType("415: Unsupported Media Type");
    error.empty_details = true;
    return Fail(std::move(error));
  }
  op.patch_type = found->patch;
  api::FieldErrors errors;
  if (op.options.force_set) {
    errors.Forbidden("force", "may not be specified for non-apply patch");
  }
  ValidateWriteOptions(op.options, errors);
  if (!errors.empty()) return Fail(Invalid("meta.k8s.io", "PatchOptions", "", errors.Take()));
  op.patch = request.body;
  return {};
}

}  // namespace

void CheckDryRun(const std::vector<std::string>& values, api::FieldErrors& errors) {
  if (std::ranges::all_of(values, [](const auto& value) { return value == "All"; })) return;
  // The whole list is what is wrong.
  std::string printed;
  for (const std::string& value : values) {
    printed += printed.empty() ? '[' : ',';
    api::WriteJsonString(value, printed);
  }
  errors.NotSupportedRaw("dryRun", printed + "]", {"All"});
}

void ValidateWriteOptions(const Options& options, api::FieldErrors& errors) {
  const std::string& manager = options.field_manager_given;
  if (manager.size() > 128) errors.TooLong("fieldManager", 128);
  for (size_t i = 0; i < manager.size(); ++i) {
    const auto c = static_cast<uint8_t>(manager[i]);
    if (c >= 0x20 && c != 0x7f) continue;
    errors.InvalidText("fieldManager", manager,
                       fmt::format("invalid character U+{:04X} (at position {})", c, i));
  }
  CheckDryRun(options.dry_run_values, errors);
  const std::string& validation = options.field_validation;
  if (validation != "Ignore" && validation != "Warn" && validation != "Strict") {
    errors.NotSupported("fieldValidation", validation, {"", "Ignore", "Strict", "Warn"});
  }
}

BodyKind BodyKindOf(const Operation& op) {
  if (op.info.verb == "delete" || op.info.verb == "deletecollection") {
    return {{"", "v1", "DeleteOptions"},
            op.registry->FindKindMessage({"", "v1"}, "DeleteOptions"),
            /*options=*/true};
  }
  if (op.subresource && op.subresource->message) {
    return {op.subresource->kind, op.subresource->message};
  }
  return {{op.resource->group_version.group, op.resource->group_version.version, op.resource->kind},
          op.resource->message};
}

Status DecodeBody(const net::Request& request, Operation& op) {
  const std::string_view verb = op.info.verb;
  if (verb == "get" || verb == "list" || verb == "watch") return {};
  if (request.body.size() > kMaxBody) {
    return Fail(RequestEntityTooLarge(fmt::format("limit is {}", kMaxBody)));
  }
  if (verb == "patch") return DecodePatch(request, op);
  const bool deleting = verb == "delete" || verb == "deletecollection";
  if (deleting && request.body.empty()) return {};
  api::FieldErrors errors;
  if (!deleting) ValidateWriteOptions(op.options, errors);
  if (!errors.empty()) {
    return Fail(Invalid("meta.k8s.io", verb == "create" ? "CreateOptions" : "UpdateOptions", "",
                        errors.Take()));
  }
  const BodyKind kind = BodyKindOf(op);
  const std::string_view media = MediaOf(request);
  Result<Object> object =
      Fail(UnsupportedMediaType(std::string(kUnknownFormat) + std::string(kObjectTypes)));
  const bool json = media.empty() && request.headers.Get("content-type").empty();
  if (json || media == "application/json") {
    object = DecodeText(op, kind, request.body, false, op.warnings);
  } else if (media == "application/yaml") {
    object = DecodeText(op, kind, request.body, true, op.warnings);
  } else if (media == "application/vnd.kubernetes.protobuf" && !kind.message->custom) {
    object = DecodeBinary(op, kind, request.body);
  }
  if (!object) return Fail(std::move(object).error());
  op.body = *std::move(object);
  return {};
}

}  // namespace sextant::server
