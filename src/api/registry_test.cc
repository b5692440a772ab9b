#include "api/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace sextant::api {
namespace {

TEST(RegistryTest, EveryResourceIsWhole) {
  const Registry& registry = Registry::Builtin();
  EXPECT_GE(registry.resources().size(), 80U);
  std::set<std::string> seen;
  for (const Resource* r : registry.resources()) {
    const std::string id = r->group_version.ToString() + " " + std::string(r->plural);
    EXPECT_TRUE(seen.insert(id).second) << id;
    EXPECT_EQ(registry.Find(r->group_version, r->plural), r) << id;
    EXPECT_EQ(registry.FindKind(r->group_version, r->kind), r) << id;
    ASSERT_NE(r->message, nullptr) << id;
    EXPECT_TRUE(r->message->top) << id;
    EXPECT_EQ(registry.FindKindMessage(r->group_version, r->kind), r->message) << id;
    EXPECT_EQ(registry.FindMessage(r->message->name), r->message) << id;
    EXPECT_TRUE(std::ranges::is_sorted(r->verbs)) << id;
    EXPECT_FALSE(r->verbs.empty()) << id;
    EXPECT_FALSE(r->singular.empty()) << id;
    if (r->HasVerb("list")) {
      const Message* list = registry.FindKindMessage(r->group_version, r->list_kind);
      ASSERT_NE(list, nullptr) << id;
      EXPECT_EQ(list->FindField("items")->message, r->message) << id;
    }
    for (const Subresource& s : r->subresources) {
      EXPECT_EQ(r->FindSubresource(s.name), &s);
      ASSERT_NE(s.message, nullptr) << id << "/" << s.name;
      EXPECT_FALSE(s.verbs.empty()) << id << "/" << s.name;
    }
  }
}

TEST(RegistryTest, FactsOfPods) {
  const Resource* pods = Registry::Builtin().Find({"", "v1"}, "pods");
  ASSERT_NE(pods, nullptr);
  EXPECT_EQ(pods->singular, "pod");
  EXPECT_EQ(pods->list_kind, "PodList");
  EXPECT_TRUE(pods->namespaced);
  EXPECT_FALSE(pods->virtual_review);
  ASSERT_EQ(pods->short_names.size(), 1U);
  EXPECT_EQ(pods->short_names[0], "po");
  EXPECT_EQ(pods->storage_version_hash, "xPOwRZ+Yhw8=");
  EXPECT_TRUE(std::ranges::count(pods->selectable_fields, "spec.nodeName"));
  EXPECT_EQ(pods->FindSubresource("eviction")->kind.group, "policy");
  EXPECT_EQ(pods->FindSubresource("nothing"), nullptr);
  EXPECT_EQ(pods->message, Registry::Builtin().FindMessage("io.k8s.api.core.v1.Pod"));
}

TEST(RegistryTest, ScaleSpeaksAutoscaling) {
  const Resource* d = Registry::Builtin().Find({"apps", "v1"}, "deployments");
  ASSERT_NE(d, nullptr);
  const Subresource* scale = d->FindSubresource("scale");
  ASSERT_NE(scale, nullptr);
  EXPECT_EQ(scale->kind.group, "autoscaling");
  EXPECT_EQ(scale->message->name, "io.k8s.api.autoscaling.v1.Scale");
}

TEST(RegistryTest, Reviews) {
  const Registry& r = Registry::Builtin();
  EXPECT_TRUE(r.Find({"authentication.k8s.io", "v1"}, "tokenreviews")->virtual_review);
  EXPECT_TRUE(r.Find({"authorization.k8s.io", "v1"}, "selfsubjectaccessreviews")->virtual_review);
  EXPECT_FALSE(r.Find({"apps", "v1"}, "deployments")->virtual_review);
}

TEST(RegistryTest, OwnKind) {
  const Resource* pools = Registry::Builtin().Find({"sextant.dev", "v1alpha1"}, "gpupools");
  ASSERT_NE(pools, nullptr);
  EXPECT_FALSE(pools->namespaced);
  EXPECT_EQ(pools->message->name, "dev.sextant.v1alpha1.GPUPool");
  EXPECT_EQ(pools->message->FindField("spec")->message->FindField("model")->description,
            "Name of the GPU model in the catalogue, for example \"h100\".");
}

TEST(RegistryTest, KindsThatAreNoResources) {
  const Registry& r = Registry::Builtin();
  const Message* options = r.FindKindMessage({"meta.k8s.io", "v1"}, "DeleteOptions");
  ASSERT_NE(options, nullptr);
  EXPECT_EQ(r.FindKindMessage({"", "v1"}, "DeleteOptions"), options);
  EXPECT_EQ(r.FindKindMessage({"policy", "v1"}, "DeleteOptions"), options);
  EXPECT_NE(r.FindKindMessage({"", "v1"}, "Status"), nullptr);
  EXPECT_NE(r.FindKindMessage({"", "v1"}, "APIResourceList"), nullptr);
  EXPECT_NE(r.FindKindMessage({"apidiscovery.k8s.io", "v2"}, "APIGroupDiscoveryList"), nullptr);
  EXPECT_EQ(r.FindKindMessage({"apps", "v1"}, "Status"), nullptr);
  EXPECT_EQ(r.FindKindMessage({"apps", "v1"}, "Pod"), nullptr);
  EXPECT_EQ(r.Find({"apps", "v1"}, "pods"), nullptr);
  EXPECT_EQ(r.FindKind({"", "v1"}, "Status"), nullptr);
  EXPECT_EQ(r.FindMessage("io.k8s.api.core.v1.None"), nullptr);
}

}  // namespace
}  // namespace sextant::api
