#include "server/subresources.h"

#include <fmt/format.h>

#include <array>

#include "api/conversion.h"
#include "base/quote.h"
#include "server/subresource_parts.h"

namespace sextant::server {
namespace {

using Handler = void (*)(const SubresourceCall&, Respond);

// By plural and subresource; "" for virtual resources themselves; "*" for any resource.
struct Row {
  std::string_view resource;
  std::string_view subresource;
  Handler handler;
};
constexpr std::array<Row, 11> kRows = {{
    {"*", "scale", Scale},
    {"pods", "binding", Bind},
    {"bindings", "", Bind},
    {"pods", "eviction", Evict},
    {"serviceaccounts", "token", CreateToken},
    {"subjectaccessreviews", "", ReviewAccess},
    {"localsubjectaccessreviews", "", ReviewAccess},
    {"selfsubjectaccessreviews", "", ReviewAccess},
    {"selfsubjectrulesreviews", "", ReviewRules},
    {"selfsubjectreviews", "", ReviewSelf},
    {"tokenreviews", "", ReviewToken},
}};

Handler HandlerOf(const Operation& op) {
  const std::string_view sub = op.subresource ? op.subresource->name : "";
  for (const Row& row : kRows) {
    if (row.subresource != sub) continue;
    if (row.resource == "*" || row.resource == op.resource->plural) return row.handler;
  }
  return nullptr;
}

}  // namespace

bool Subresources::Serves(const Operation& op) { return HandlerOf(op) != nullptr; }

bool Subresources::Execute(Operation& op, Respond& done) {
  const Handler handler = HandlerOf(op);
  if (!handler) return false;
  pipeline_.workers().Post([this, handler, op = std::move(op), done = std::move(done)]() mutable {
    if (!op.authorized) {
      if (auto allowed = pipeline_.Authorize(op); !allowed) {
        return done(Fail(std::move(allowed).error()));
      }
    }
    if (auto known = Pipeline::CheckVerb(op); !known) return done(Fail(std::move(known).error()));
    if (auto admitted = AdmitSubresource(op, pipeline_.context()); !admitted) {
      return done(Fail(std::move(admitted).error()));
    }
    handler({pipeline_, authenticator_, std::move(op)}, std::move(done));
  });
  return true;
}

}  // namespace sextant::server
