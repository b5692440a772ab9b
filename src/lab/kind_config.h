// kind's cluster file (kind.x-k8s.io/v1alpha4), read as it is. Every field is honoured or refused
// by name; what is accepted without an effect is named in a notice. Further documents of the file
// may be GPUPool objects: the pools that the lab starts with.
//
//   ASSIGN_OR_RETURN(KindFile file, ReadKindFile(text, "fake-gpu-cluster.yaml"));
//
// Errors: UsageError "<file>:<line>: <what>", with the nearest right word. Pure; any thread.
// Source: sigs.k8s.io/kind pkg/apis/config/v1alpha4/types.go.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "lab/config.h"

namespace sextant::lab {

struct KindFile {
  LabConfig config;  // name as in the file, or empty
  std::vector<std::string> notices;
};

Result<KindFile> ReadKindFile(std::string_view text, std::string_view file_name);

// kindest/node:v1.36.1@sha256:...: an Error where the tag is another minor's.
Status CheckNodeImage(std::string_view image);

// Names as kind gives them: <cluster>-control-plane, -control-plane2, <cluster>-worker, -worker2.
// Call after the cluster's name is settled.
void NameNodes(LabConfig& config);

// Whether nodes of these names can register: a name is a DNS subdomain and the value of the label
// kubernetes.io/hostname. The Error says what of the cluster's name is wrong.
Status CheckNodeNames(const LabConfig& config);

// Whether a kubelet may register with this label; the Error says why not.
Status CheckNodeLabel(std::string_view key, std::string_view value);

}  // namespace sextant::lab
