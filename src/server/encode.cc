#include "server/encode.h"

#include <fmt/format.h>

#include "api/custom_kind.h"
#include "api/json.h"
#include "api/protobuf.h"
#include "api/rules.h"
#include "api/yaml.h"
#include "base/quote.h"
#include "net/http.h"
#include "server/status_object.h"
#include "server/tables.h"

namespace sextant::server {
namespace {

using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

constexpr std::string_view kMetaGroup = "meta.k8s.io/";

// The object itself as text, in JSON's media.
void AppendValue(Value value, const Form& form, std::string* out) {
  if (form.media == Media::kYaml) {
    api::WriteYaml(value, *out);
  } else if (form.pretty) {
    api::WriteJson(value, *out, {.indent = 2, .newline = true});
  } else {
    api::WriteJson(value, *out, {.newline = true});
  }
}

Result<std::string> Text(const Object& object, const Form& form) {
  std::string out;
  AppendValue(object.root(), form, &out);
  return out;
}

// An object in the envelope that Kubernetes' protobuf wants, or as text.
Result<std::string> EncodeObject(const Object& object, const api::Message* message,
                                 const Form& form) {
  if (form.media != Media::kProtobuf) return Text(object, form);
  if (!message) return Fail(NotAcceptable("this answer cannot be encoded as protobuf"));
  std::string out;
  api::EncodeProtobuf(object.root(), *message, out);
  return out;
}

const api::Message* StatusMessage() {
  return api::Registry::Builtin().FindKindMessage({"", "v1"}, "Status");
}

// A PartialObjectMetadata into `out` of `edit`.
void SetPartial(const api::Resource& resource, const Object& object, const std::string& version,
                Editor& edit, Mut out) {
  out.Set("kind", "PartialObjectMetadata");
  out.Set("apiVersion", std::string(kMetaGroup) + version);
  edit.Keep(object);
  out.Set("metadata", object["metadata"]);
  const std::string_view field = api::RulesFor(resource).field_annotation;
  if (field.empty() || !object["metadata"]["annotations"][field]) return;
  Mut annotations = out["metadata"]["annotations"];
  annotations.Erase(field);
  if (annotations.size() == 0) out["metadata"].Erase("annotations");
}

Object Partial(const api::Resource& resource, const Object& object, const std::string& version) {
  Editor edit;
  SetPartial(resource, object, version, edit, edit.Root());
  return std::move(edit).Finish();
}

void SetListMeta(const ListOutcome& list, Mut metadata) {
  metadata.SetMap();
  metadata.Set("resourceVersion", list.resource_version);
  if (!list.continue_token.empty()) metadata.Set("continue", list.continue_token);
  if (list.remaining) metadata.Set("remainingItemCount", *list.remaining);
}

// A list of custom resources, with its members by name.
void AppendCustomList(std::string_view kind, std::string_view api_version, const ListOutcome& list,
                      std::string* out) {
  Editor edit;
  SetListMeta(list, edit.Root());
  if (list.continue_token.empty()) edit.Root().Set("continue", "");
  const Object metadata = std::move(edit).Finish();
  fmt::format_to(std::back_inserter(*out), "{{\"apiVersion\":\"{}\",\"items\":[", api_version);
  bool first = true;
  for (const Object& item : list.items) {
    if (!first) out->push_back(',');
    first = false;
    api::WriteJson(item.root(), *out);
  }
  fmt::format_to(std::back_inserter(*out), "],\"kind\":\"{}\",\"metadata\":", kind);
  api::WriteJson(metadata.root(), *out);
  out->append("}\n");
}

// {"kind":...,"apiVersion":...,"metadata":{...},"items":[...]}, written straight through so that
// ten thousand objects are not put into one tree first. Items of built-in lists carry no kind.
void AppendJsonList(std::string_view kind, std::string_view api_version, const ListOutcome& list,
                    bool items_typed, std::string* out) {
  Editor edit;
  SetListMeta(list, edit.Root());
  const Object metadata = std::move(edit).Finish();
  fmt::format_to(std::back_inserter(*out),
                 "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":", kind, api_version);
  api::WriteJson(metadata.root(), *out);
  // As Go has it: a list of typed items that nobody filled is null.
  if (items_typed && list.items.empty()) {
    out->append(",\"items\":null}\n");
    return;
  }
  out->append(",\"items\":[");
  bool first = true;
  for (const Object& item : list.items) {
    if (!first) out->push_back(',');
    first = false;
    api::WriteJson(item.root(), *out, {.omit_type_meta = !items_typed});
  }
  out->append("]}\n");
}

Result<std::string> AsText(std::string json, const Form& form) {
  if (form.media == Media::kJson && !form.pretty) return json;
  ASSIGN_OR_RETURN(const Object object, api::ParseJson(json));
  return Text(object, form);
}

Result<std::string> TextList(std::string_view kind, std::string_view api_version,
                             const ListOutcome& list, bool items_typed, const Form& form) {
  std::string json;
  AppendJsonList(kind, api_version, list, items_typed, &json);
  return AsText(std::move(json), form);
}

Result<std::string> EncodeList(const Operation& op, const ListOutcome& list, const Form& form) {
  const api::Resource& resource = *op.resource;
  const std::string api_version = resource.group_version.ToString();
  if (api::AsCustom(resource)) {
    std::string json;
    AppendCustomList(resource.list_kind, api_version, list, &json);
    return AsText(std::move(json), form);
  }
  if (form.media != Media::kProtobuf) {
    return TextList(resource.list_kind, api_version, list, false, form);
  }
  const api::Message* message =
      op.registry->FindKindMessage(resource.group_version, resource.list_kind);
  if (!message) return Fail(NotAcceptable("this list cannot be encoded as protobuf"));
  Editor edit;
  SetListMeta(list, edit.Root());
  const Object metadata = std::move(edit).Finish();
  std::string out;
  api::EncodeProtobufList({api_version, std::string(resource.list_kind)}, *message, metadata.root(),
                          list.items, out);
  return out;
}

Result<std::string> EncodePartialList(const api::Resource& resource, const Outcome& outcome,
                                      const Form& form) {
  ListOutcome partial;
  partial.resource_version = outcome.list->resource_version;
  partial.continue_token = outcome.list->continue_token;
  partial.remaining = outcome.list->remaining;
  for (const Object& item : outcome.list->items) {
    partial.items.push_back(Partial(resource, item, form.as_version));
  }
  const std::string api_version = std::string(kMetaGroup) + form.as_version;
  if (form.media != Media::kProtobuf) {
    return TextList("PartialObjectMetadataList", api_version, partial, true, form);
  }
  const api::Message* message =
      api::Registry::Builtin().FindKindMessage({"meta.k8s.io", "v1"}, "PartialObjectMetadataList");
  if (!message) return Fail(NotAcceptable("this list cannot be encoded as protobuf"));
  Editor edit;
  SetListMeta(partial, edit.Root());
  const Object metadata = std::move(edit).Finish();
  std::string out;
  api::EncodeProtobufList({api_version, "PartialObjectMetadataList"}, *message, metadata.root(),
                          partial.items, out);
  return out;
}

void AddColumn(Mut columns, std::string_view name, std::string_view type, std::string_view format,
               std::string_view description, int64_t priority) {
  Mut item = columns.Append();
  item.Set("name", name);
  item.Set("type", type);
  item.Set("format", format);
  item.Set("description", description);
  item.Set("priority", priority);
}

void AddColumns(const api::Resource& resource, Mut columns) {
  columns.SetList();
  if (const api::CustomVersion* custom = api::AsCustom(resource)) {
    AddColumn(columns, "Name", "string", "name", "", 0);
    for (const api::PrinterColumn& c : custom->columns) {
      AddColumn(columns, c.name, c.type, c.format, c.description, c.priority);
    }
    return;
  }
  for (const Column& c : TableFor(resource).columns) {
    if (!c.name.empty()) AddColumn(columns, c.name, c.type, c.format, "", c.priority);
  }
}

// What the rows of one kind show: a custom kind's columns, or those of its table.
struct RowKind {
  const api::Resource& resource;
  const api::CustomVersion* custom;  // nullptr: a built-in kind
  const TableKind& table;
};

void AddCells(const RowKind& kind, const Object& object, Time now, Mut cells) {
  cells.SetList();
  if (kind.custom) {
    cells.Append().SetString(object.name());
    for (const api::PrinterColumn& column : kind.custom->columns) {
      PrintCustomCell(column, object, now, cells.Append());
    }
    return;
  }
  for (const Column& column : kind.table.columns) {
    column.cell(object.root(), now, cells.Append());
  }
}

void AddRow(const RowKind& kind, const Object& object, const EncodeContext& context, Editor& edit,
            Mut rows) {
  Mut row = rows.Append();
  AddCells(kind, object, context.now, row["cells"]);
  if (kind.table.conditions) kind.table.conditions(object.root(), row);
  Mut carried = row["object"];
  switch (context.include) {
    case IncludeObject::kNone:
      carried.SetNull();
      return;
    case IncludeObject::kObject:
      edit.Keep(object);
      carried.Set(object.root());
      return;
    case IncludeObject::kMetadata:
      SetPartial(kind.resource, object, context.form.as_version, edit, carried);
  }
}

Object MakeTable(const Operation& op, std::span<const Object> objects, const ListOutcome* list,
                 bool with_columns, const EncodeContext& context) {
  Editor edit;
  Mut root = edit.Root();
  root.Set("kind", "Table");
  root.Set("apiVersion", std::string(kMetaGroup) + context.form.as_version);
  Mut metadata = root["metadata"];
  if (list) {
    SetListMeta(*list, metadata);
  } else {
    metadata.SetMap();
    if (!objects.empty() && !objects[0].resource_version().empty()) {
      metadata.Set("resourceVersion", objects[0].resource_version());
    }
  }
  Mut columns = root["columnDefinitions"];
  if (with_columns) {
    AddColumns(*op.resource, columns);
  } else {
    columns.SetNull();
  }
  Mut rows = root["rows"];
  rows.SetList();
  const RowKind kind{*op.resource, api::AsCustom(*op.resource), TableFor(*op.resource)};
  for (const Object& object : objects) AddRow(kind, object, context, edit, rows);
  return std::move(edit).Finish();
}

// The type that the real server has in memory: "*core.ConfigMap".
std::string InternalGoType(const api::Resource& resource) {
  std::string_view group = resource.group_version.group;
  if (group.empty()) group = "core";
  return fmt::format("*{}.{}", group.substr(0, group.find('.')), resource.kind);
}

std::string_view EventName(WatchKind kind) {
  switch (kind) {
    case WatchKind::kAdded:
      return "ADDED";
    case WatchKind::kModified:
      return "MODIFIED";
    case WatchKind::kDeleted:
      return "DELETED";
    case WatchKind::kBookmark:
      return "BOOKMARK";
    case WatchKind::kError:
      break;
  }
  return "ERROR";
}

}  // namespace

Result<IncludeObject> ParseIncludeObject(std::string_view query) {
  ASSIGN_OR_RETURN(const auto parameters, net::ParseQuery(query));
  for (const auto& [name, value] : parameters) {
    if (name != "includeObject") continue;
    if (value.empty() || value == "Metadata") return IncludeObject::kMetadata;
    if (value == "None") return IncludeObject::kNone;
    if (value == "Object") return IncludeObject::kObject;
    return Fail(BadRequest(fmt::format(
        "Unable to convert to Table as requested: includeObject: Invalid value: {}: must "
        "be 'Metadata', 'Object', 'None', or empty",
        Quote(value))));
  }
  return IncludeObject::kMetadata;
}

Result<std::string> EncodeOutcome(const Operation& op, const Outcome& outcome,
                                  const EncodeContext& context) {
  const Form& form = context.form;
  if (outcome.list) {
    if (form.as == As::kTable) {
      return Text(MakeTable(op, outcome.list->items, outcome.list.get(), true, context), form);
    }
    if (form.as == As::kObject) return EncodeList(op, *outcome.list, form);
    if (form.as == As::kPartialList) return EncodePartialList(*op.resource, outcome, form);
    return Fail(
        NotAcceptable("you requested PartialObjectMetadata, but the requested object is a "
                      "list"));
  }
  if (outcome.object.kind() == "Status") {
    return EncodeObject(outcome.object, StatusMessage(), form);
  }
  // What cannot be read back has no columns, and other kinds' subresources have those of nobody.
  const bool own = op.resource && outcome.message == op.resource->message;
  if (form.as == As::kTable && own && op.resource->HasVerb("get")) {
    return Text(MakeTable(op, {&outcome.object, 1}, nullptr, true, context), form);
  }
  if (form.as == As::kPartial) {
    const api::Message* message =
        api::Registry::Builtin().FindKindMessage({"meta.k8s.io", "v1"}, "PartialObjectMetadata");
    return EncodeObject(Partial(*op.resource, outcome.object, form.as_version), message, form);
  }
  if (form.as == As::kPartialList) {
    return Fail(NotAcceptable(
        fmt::format("you requested PartialObjectMetadataList, but the requested object is not a "
                    "list ({})",
                    InternalGoType(*op.resource))));
  }
  return EncodeObject(outcome.object, outcome.message, form);
}

std::string EncodeStatus(const Error& error, const Form& form) {
  auto text = EncodeObject(StatusObject(error), StatusMessage(), form);
  if (text) return *std::move(text);
  return *Text(StatusObject(error), Form{});
}

Result<std::string> EncodeWatchFrame(const Operation& op, const WatchUpdate& update, bool first,
                                     const EncodeContext& context) {
  Object object = update.object;
  const api::Message* message = op.resource->message;
  if (update.kind == WatchKind::kError) {
    message = StatusMessage();
  } else if (context.form.as == As::kTable) {
    object = MakeTable(op, {&update.object, 1}, nullptr, first, context);
  } else if (context.form.as == As::kPartial || context.form.as == As::kPartialList) {
    object = Partial(*op.resource, update.object, context.form.as_version);
    message =
        api::Registry::Builtin().FindKindMessage({"meta.k8s.io", "v1"}, "PartialObjectMetadata");
  }
  std::string out;
  if (context.form.media == Media::kProtobuf) {
    if (!message) return Fail(NotAcceptable("this event cannot be encoded as protobuf"));
    std::string body;
    api::EncodeProtobuf(object.root(), *message, body);
    api::AppendWatchFrame(EventName(update.kind), body, out);
    return out;
  }
  fmt::format_to(std::back_inserter(out), "{{\"type\":\"{}\",\"object\":", EventName(update.kind));
  api::WriteJson(object.root(), out);
  out.append("}\n");
  return out;
}

}  // namespace sextant::server
