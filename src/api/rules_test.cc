// The table of rules and the rules of metadata.
#include "api/rules.h"

#include <gtest/gtest.h>

#include "api/json.h"
#include "api/registry.h"
#include "api/rules_kit.h"

namespace sextant::api {
namespace {

TEST(AtTest, PrintsLikeFieldPath) {
  const At spec("spec");
  const At container = spec.Item("containers", 2);
  EXPECT_EQ((container / "name").ToString(), "spec.containers[2].name");
  const At limits = container / "resources.limits";
  EXPECT_EQ(limits.Key("", "nvidia.com/gpu").ToString(),
            "spec.containers[2].resources.limits[nvidia.com/gpu]");
  const At root;
  EXPECT_EQ((root / "provisioner").ToString(), "provisioner");
}

TEST(RulesForTest, EveryServedKindHasARow) {
  // A kind without a row would silently get no defaults: the virtual ones aside, each has one.
  for (const Resource* r : Registry::Builtin().resources()) {
    if (r->virtual_review || !r->HasVerb("update")) continue;
    if (r->group_version.group == "apiextensions.k8s.io") continue;  // its own pipeline
    const Rules& rules = RulesFor(*r);
    static const Rules& none = RulesFor(Resource{});
    EXPECT_NE(&rules, &none) << r->group_version.ToString() << " " << r->plural;
  }
}

std::vector<std::string> Messages(std::string_view metadata, const Rules& rules = {}) {
  const auto object = ParseJson(metadata);
  FieldErrors errors;
  ValidateObjectMeta(object->root(), true, rules, errors);
  std::vector<std::string> out;
  for (const Cause& c : errors.causes()) out.push_back(c.field + ": " + c.message);
  return out;
}

TEST(ObjectMetaTest, Messages) {
  using List = std::vector<std::string>;
  EXPECT_EQ(Messages(R"({"name":"a","namespace":"n"})"), List{});
  EXPECT_EQ(Messages(R"({"namespace":"n"})"),
            List{"metadata.name: Required value: name or generateName is required"});
  EXPECT_EQ(Messages(R"({"name":"a"})"), List{"metadata.namespace: Required value"});
  EXPECT_EQ(
      Messages(R"({"name":"a","namespace":"n","finalizers":["x"]})"),
      List{"metadata.finalizers[0]: Invalid value: \"x\": name is neither a standard finalizer "
           "name nor is it fully qualified"});
  EXPECT_EQ(
      Messages(
          R"({"name":"a","namespace":"n","ownerReferences":[{"apiVersion":"v1","kind":"Pod"}]})"),
      (List{"metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
            "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty"}));
}

}  // namespace
}  // namespace sextant::api
