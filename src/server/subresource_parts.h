// The handlers behind Subresources' table. Each answers by `done`, on a worker.
#pragma once

#include "server/authenticator.h"
#include "server/pipeline.h"

namespace sextant::server {

struct SubresourceCall {
  Pipeline& pipeline;
  const Authenticator& authenticator;
  Operation op;
};

void Scale(const SubresourceCall& call, Respond done);
void Bind(const SubresourceCall& call, Respond done);
void Evict(const SubresourceCall& call, Respond done);
void CreateToken(const SubresourceCall& call, Respond done);
void ReviewAccess(const SubresourceCall& call, Respond done);
void ReviewRules(const SubresourceCall& call, Respond done);
void ReviewSelf(const SubresourceCall& call, Respond done);
void ReviewToken(const SubresourceCall& call, Respond done);

// {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"} with `code` as HTTP status.
Outcome SuccessStatus(int code);

}  // namespace sextant::server
