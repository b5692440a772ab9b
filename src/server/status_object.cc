#include "server/status_object.h"

namespace sextant::server {
namespace {

void SetUnlessEmpty(api::Mut map, std::string_view key, const std::string& value) {
  if (!value.empty()) map.Set(key, value);
}

}  // namespace

api::Object StatusObject(const Error& error) {
  api::Editor edit;
  api::Mut root = edit.Root();
  root.Set("kind", "Status");
  root.Set("apiVersion", "v1");
  root["metadata"].SetMap();
  root.Set("status", "Failure");
  SetUnlessEmpty(root, "message", error.message);
  SetUnlessEmpty(root, "reason", error.reason);
  const bool details = !error.name.empty() || !error.group.empty() || !error.kind.empty() ||
                       !error.uid.empty() || !error.causes.empty() || error.retry_after_s != 0 ||
                       error.empty_details;
  if (details) {
    api::Mut out = root["details"];
    out.SetMap();
    SetUnlessEmpty(out, "name", error.name);
    SetUnlessEmpty(out, "group", error.group);
    SetUnlessEmpty(out, "kind", error.kind);
    SetUnlessEmpty(out, "uid", error.uid);
    for (const Cause& cause : error.causes) {
      api::Mut item = out["causes"].Append();
      item.SetMap();
      SetUnlessEmpty(item, "reason", cause.reason);
      SetUnlessEmpty(item, "message", cause.message);
      SetUnlessEmpty(item, "field", cause.field);
    }
    if (error.retry_after_s != 0) out.Set("retryAfterSeconds", error.retry_after_s);
  }
  root.Set("code", error.code);
  return std::move(edit).Finish();
}

}  // namespace sextant::server
