// The Node authorizer: what the kubelet of a node may do and see: its Node, the Pods bound to it
// and what those refer to. What a kubelet writes, NodeRestriction looks at (admission_nodes.cc).
// Source: k8s.io/kubernetes plugin/pkg/auth/authorizer/node at v1.36.3; the relations between
// objects are read from the snapshots instead of a graph. Secrets that only volumes name are not
// followed.
#pragma once

#include "server/admission.h"
#include "server/authorizer.h"

namespace sextant::server {

// No opinion of other users than nodes: not allowed, without a reason.
Decision AuthorizeNode(const User& user, const RequestInfo& info, const ClusterView& view);

// The node that a user is; "" for all others.
std::string_view NodeOf(const User& user);

}  // namespace sextant::server
