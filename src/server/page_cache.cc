#include "server/page_cache.h"

#include <fmt/format.h>

#include "api/json.h"
#include "base/base64.h"
#include "net/tls.h"

namespace sextant::server {
namespace {

constexpr size_t kMaxTokenBytes = 2048;
constexpr std::string_view kTokenVersion = "meta.k8s.io/v1";

Error BadToken(std::string_view why) {
  return BadRequest(fmt::format("invalid continue token: continue key is not valid: {}", why));
}

}  // namespace

void PageCache::Put(std::string resource, std::shared_ptr<const store::Snapshot> snapshot,
                    Duration now) {
  std::lock_guard lock(mutex_);
  while (!pages_.empty() &&
         (pages_.size() >= kMaxSnapshots || now - pages_.front().used > kMaxAge)) {
    pages_.pop_front();
  }
  for (auto it = pages_.begin(); it != pages_.end(); ++it) {
    if (it->resource == resource && it->snapshot->revision() == snapshot->revision()) {
      pages_.erase(it);
      break;
    }
  }
  pages_.push_back({std::move(resource), std::move(snapshot), now});
}

std::shared_ptr<const store::Snapshot> PageCache::Find(std::string_view resource,
                                                       store::Revision revision, Duration now) {
  std::lock_guard lock(mutex_);
  for (const Page& page : pages_) {
    if (page.resource == resource && page.snapshot->revision() == revision &&
        now - page.used <= kMaxAge) {
      return page.snapshot;
    }
  }
  return nullptr;
}

// The real server's tokens are base64url of {"v","rv","start"}, start being the key after the last.
std::string EncodeContinue(const ContinueToken& token) {
  api::Editor edit;
  edit.Root().Set("v", kTokenVersion);
  edit.Root().Set("rv", static_cast<int64_t>(token.revision));
  edit.Root().Set("start", fmt::format("{}/{}", token.ns, token.name));
  std::string text;
  const api::Object object = std::move(edit).Finish();
  api::WriteJson(object.root(), text);
  return Base64Url(text);
}

Result<ContinueToken> DecodeContinue(std::string_view text) {
  if (text.size() > kMaxTokenBytes) return Fail(BadToken("too long"));
  auto raw = Base64UrlDecode(text);
  if (!raw) return Fail(BadToken("illegal base64 data"));
  auto parsed = api::ParseJson(*raw);
  if (!parsed) return Fail(BadToken(parsed.error().message));
  const api::Object& object = *parsed;
  if (object["v"].AsString() != kTokenVersion) {
    return Fail(BadToken(fmt::format("server does not recognize this encoded version \"{}\"",
                                     object["v"].AsString())));
  }
  const std::string_view start = object["start"].AsString();
  const size_t slash = start.find('/');
  if (object["rv"].AsInt() <= 0 || slash == std::string_view::npos) {
    return Fail(BadToken("incorrect encoded start resourceVersion (version meta.k8s.io/v1)"));
  }
  return ContinueToken{static_cast<store::Revision>(object["rv"].AsInt()),
                       std::string(start.substr(0, slash)), std::string(start.substr(slash + 1))};
}

}  // namespace sextant::server
