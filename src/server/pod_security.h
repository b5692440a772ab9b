// The Pod Security Standards: what Pods may ask for at the levels privileged, baseline and
// restricted, as the policy was in a minor version of Kubernetes.
//
//   PodSecurityPolicy policy = PolicyOf(ns["metadata"]["labels"], &errors);
//   Violations found = Violations::Of(policy.enforce, pod["metadata"], pod["spec"]);
//   if (!found.empty()) Refuse(found.Detail());   // "host namespaces (hostPID=true), privileged
//   ..."
//
// Source: k8s.io/pod-security-admission v0.36.3 (policy, api). Pure functions, any thread.
#pragma once

#include <compare>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "api/rules.h"

namespace sextant::server {

enum class SecurityLevel : uint8_t { kPrivileged, kBaseline, kRestricted };  // ever stricter

inline constexpr int kLatestMinor = std::numeric_limits<int>::max();

struct LeveledPolicy {
  SecurityLevel level = SecurityLevel::kPrivileged;
  int minor = kLatestMinor;  // of Kubernetes 1.x

  std::string ToString() const;  // "baseline:latest", "restricted:v1.30"
  bool operator==(const LeveledPolicy&) const = default;
};

struct PodSecurityPolicy {
  LeveledPolicy enforce;
  LeveledPolicy warn;
};

// What a namespace's labels say. Labels that say nothing sensible are told in `errors`; restricted
// is enforced for them then, and nothing warned of.
PodSecurityPolicy PolicyOf(api::Value labels, api::FieldErrors& errors);

class Violations {
 public:
  static Violations Of(const LeveledPolicy& policy, api::Value metadata, api::Value spec);

  bool empty() const { return found_.empty(); }
  std::string Reasons() const;  // "host namespaces, privileged"
  std::string Detail() const;   // with what is wrong where, in parentheses

  struct One {
    std::string reason;  // empty: none
    std::string detail;
  };

 private:
  std::vector<One> found_;
};

}  // namespace sextant::server
