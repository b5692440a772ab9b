// Nodes of a running lab. The lab is steered through its API alone: a Node object with the label
// sextant.dev/simulated is a machine to run, the annotation sextant.dev/power says on or off.
#include <fmt/format.h>

#include <cstdio>

#include "api/names.h"
#include "cli/commands.h"
#include "cli/process.h"
#include "cli/session.h"
#include "lab/node_set.h"

namespace sextant::cli {
namespace {

api::Object NewNode(const std::string& name) {
  api::Editor edit;
  edit.Root().Set("kind", "Node");
  edit.Root().Set("apiVersion", "v1");
  edit.Root()["metadata"].Set("name", name);
  edit.Root()["metadata"]["labels"].Set(lab::kSimulatedLabel, "true");
  return std::move(edit).Finish();
}

api::Object Power(std::string_view state) {
  api::Editor edit;
  edit.Root()["metadata"]["annotations"].Set(lab::kPowerAnnotation, state);
  return std::move(edit).Finish();
}

}  // namespace

int Node(NodeAction action, const std::string& name, const std::string& node) {
  if (action == NodeAction::kAdd && node.size() > api::kLabelValueMax) {
    return Report(UsageError(fmt::format(
        "node {}: a node's name is the value of its label kubernetes.io/hostname, at most {} "
        "characters",
        node, api::kLabelValueMax)));
  }
  auto state = FindLab(name);
  if (!state) return Report(state.error());
  auto session = Session::ToLab(*state);
  if (!session) return Report(session.error());
  Result<api::Object> result = Fail(Error{});
  std::string_view done;
  switch (action) {
    case NodeAction::kAdd:
      result = (*session)->calls().Create(client::kNodes, {"", node}, NewNode(node));
      done = "added";
      break;
    case NodeAction::kRemove:
      result = (*session)->calls().Delete(client::kNodes, {"", node});
      done = "removed";
      break;
    case NodeAction::kStop:
      result = (*session)->calls().Patch(client::kNodes, {"", node}, client::PatchType::kMerge,
                                         Power("off"));
      done = "stopped";
      break;
    case NodeAction::kStart:
      result = (*session)->calls().Patch(client::kNodes, {"", node}, client::PatchType::kMerge,
                                         Power("on"));
      done = "started";
      break;
  }
  if (!result) return Report(result.error());
  fmt::print(stderr, "node {} {}\n", node, done);
  return 0;
}

}  // namespace sextant::cli
