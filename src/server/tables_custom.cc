// Cells of custom resources, from the JSONPath of their printer columns.
//
// Source: k8s.io/apiextensions-apiserver pkg/registry/customresource/tableconvertor at v0.36.3.
#include "api/go_values.h"
#include "api/json.h"
#include "server/table_cells.h"
#include "server/tables.h"

namespace sextant::server {
namespace {

using api::Kind;
using api::Mut;
using api::Value;

}  // namespace

void PrintCustomCell(const api::PrinterColumn& column, const api::Object& object, Time now,
                     Mut out) {
  const std::vector<Value> found = column.path.Find(object.root());
  const Value value = found.empty() ? Value() : found.front();
  out.SetNull();
  if (!value) return;
  if (column.type == "string") {
    return out.SetString(value.IsString() ? std::string(value.AsString()) : api::ToJson(value));
  }
  if (column.type == "integer" && value.IsNumber()) {
    return out.SetInt(value.IsInt() ? value.AsInt() : api::GoInt64(value.AsDouble()));
  }
  if (column.type == "number" && value.IsNumber()) {
    return value.IsInt() ? out.SetInt(value.AsInt()) : out.SetDouble(value.AsDouble());
  }
  if (column.type == "boolean" && value.kind() == Kind::kBool) return out.SetBool(value.AsBool());
  if (column.type == "date" && value.IsString()) {
    const bool time = ParseTime(value.AsString()).has_value();
    out.SetString(time ? cells::Since(value, now) : "<invalid>");
  }
}

}  // namespace sextant::server
