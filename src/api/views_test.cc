#include "api/views.h"

#include <gtest/gtest.h>

#include "api/builders.h"
#include "api/views/apps_v1_mut.h"
#include "api/views/core_v1.h"
#include "api/views/core_v1_mut.h"

namespace sextant::api {
namespace {

TEST(ViewsTest, WhatABuilderWritesAViewReads) {
  Editor edit;
  core_v1::PodMut pod(edit.Root());
  pod.SetType();
  pod.metadata().set_name("train");
  pod.metadata().labels().Set("app", "train");
  pod.spec().set_priority(7);
  pod.spec().add_volumes().emptyDir().set_medium("Memory");
  const core_v1::ContainerMut container = pod.spec().add_containers();
  container.set_name("main");
  container.add_args("-v");
  container.add_args("8");
  container.resources().limits().Set("nvidia.com/gpu", "1");
  const Object object = std::move(edit).Finish();

  const core_v1::Pod view(object.root());
  EXPECT_EQ(view.kind(), "Pod");
  EXPECT_EQ(view.apiVersion(), "v1");
  EXPECT_EQ(view.metadata().name(), "train");
  EXPECT_EQ(view.metadata().labels()["app"].AsString(), "train");
  EXPECT_TRUE(view.spec().has_priority());
  EXPECT_EQ(view.spec().priority(), 7);
  ASSERT_EQ(view.spec().volumes().size(), 1U);
  EXPECT_TRUE(view.spec().volumes().at(0).has_emptyDir());  // a field of the inlined source
  EXPECT_FALSE(view.spec().volumes().at(0).has_secret());
  int containers = 0;
  for (core_v1::Container c : view.spec().containers()) {
    ++containers;
    EXPECT_EQ(c.name(), "main");
    ASSERT_EQ(c.args().size(), 2U);
    EXPECT_EQ(c.args().at(1), "8");
    EXPECT_EQ(c.resources().limits()["nvidia.com/gpu"].AsString(), "1");
  }
  EXPECT_EQ(containers, 1);
}

TEST(ViewsTest, AbsentReadsAsZero) {
  const core_v1::Pod pod;
  EXPECT_FALSE(pod);
  EXPECT_EQ(pod.spec().nodeName(), "");
  EXPECT_FALSE(pod.spec().has_priority());
  EXPECT_EQ(pod.spec().priority(), 0);
  EXPECT_EQ(pod.spec().priority(5), 5);
  EXPECT_TRUE(pod.spec().containers().empty());
  EXPECT_FALSE(pod.spec().hostNetwork());
  for (core_v1::Container c : pod.spec().containers()) FAIL() << c.name();
}

TEST(ViewsTest, BuildersOfOtherGroups) {
  Editor edit;
  apps_v1::DeploymentMut deployment(edit.Root());
  deployment.SetType();
  deployment.spec().set_replicas(2);
  deployment.spec().template_().spec().set_nodeName("worker");
  const Object object = std::move(edit).Finish();
  EXPECT_EQ(object.api_version(), "apps/v1");
  EXPECT_EQ(object.Path("spec.template.spec.nodeName").AsString(), "worker");
  EXPECT_EQ(object.Path("spec.replicas").AsInt(), 2);
}

}  // namespace
}  // namespace sextant::api
