#include "base/check.h"
#include "base/file.h"
#include "base/fuzz.h"
#include "client/kubeconfig.h"

namespace sextant::client {
namespace {

const std::string& Folder() {
  static const TempDir folder = *TempDir::Make("fuzz");
  return folder.path();
}

}  // namespace

// A user's file is read, and merged into: what it held otherwise is still there.
FUZZ_TARGET(kubeconfig) {
  // Credential plugins would be run.
  if (input.find("exec") != std::string_view::npos) return;
  const std::string path = Folder() + "/config";
  CHECK(WriteFileAtomic(path, input, 0600));
  const Result<Kubeconfig> before = LoadKubeconfig({.path = path});
  if (before) {
    (void)OptionsFor(*before, "");
    (void)NamespaceFor(*before, "");
  }
  const Result<std::string> merged =
      MergeContext({.name = "sextant-a", .server = "https://127.0.0.1:1"}, {.path = path});
  if (!merged) {
    CHECK(ReadFile(path, 1 << 20).value() == input);
    return;
  }
  const Kubeconfig after = LoadKubeconfig({.path = path}).value();
  CHECK(Kubeconfig::Find(after.contexts, "sextant-a") != nullptr);
  if (before) CHECK(after.contexts.size() >= before->contexts.size());
  CHECK(RemoveContext("sextant-a", {.path = path}));
}

}  // namespace sextant::client
