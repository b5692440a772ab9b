// Amounts of resources by name, as ResourceLists hold them, and what a Pod asks for in all.
//
//   Amounts used = ReadAmounts(quota["status"]["used"]);
//   AddAmounts(used, PodAmounts(pod, "requests"));
//   WriteAmounts(used, edit["status"]["used"]);
//
// Source: component-helpers/resource (PodRequests, PodLimits). Pure functions, any thread.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "api/document.h"
#include "api/quantity.h"

namespace sextant::api {

using Amounts = std::map<std::string, Quantity, std::less<>>;

Amounts ReadAmounts(Value list);
void AddAmounts(Amounts& to, const Amounts& more);
void WriteAmounts(const Amounts& amounts, Mut list);  // instead of what was there

// What the containers of a spec ask for ("requests") or may use ("limits") together: the sum of
// those that run side by side, or the most that an init container needs beside the restartable ones
// before it.
Amounts AggregateResources(Value spec, const char* side);

// The same of a whole Pod, with what it says of itself.
struct PodAmountsOptions {
  bool overhead = true;
  bool status = true;  // a resize under way counts with the larger of what it was and will be
  const Amounts* unsaid = nullptr;  // what counts for a container that says nothing of a resource
};
Amounts PodAmounts(Value pod, const char* side, PodAmountsOptions options = {});

// Whether a Pod may name the resource for itself rather than for a container.
bool IsPodLevelResource(std::string_view name);

}  // namespace sextant::api
