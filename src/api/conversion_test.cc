#include "api/conversion.h"

#include <gtest/gtest.h>

#include "api/json.h"

namespace sextant::api {
namespace {

const Resource& V1() {
  return *Registry::Builtin().Find({"autoscaling", "v1"}, "horizontalpodautoscalers");
}

Object Autoscaler(std::string_view api_version, std::string_view rest) {
  const Message* message =
      Registry::Builtin().FindKindMessage({"autoscaling", api_version}, "HorizontalPodAutoscaler");
  auto object = DecodeJson(R"({"apiVersion":"autoscaling/)" + std::string(api_version) +
                               R"(","kind":"HorizontalPodAutoscaler","metadata":{"name":"h"},)" +
                               std::string(rest) + "}",
                           *message);
  EXPECT_TRUE(object) << object.error().message;
  return object ? *object : Object();
}

TEST(Conversion, CpuPercentOfV1IsAMetricOfV2) {
  const Object stored =
      ToStored(Autoscaler("v1", R"("spec":{"scaleTargetRef":{"kind":"Deployment","name":"d"},)"
                                R"("maxReplicas":3,"targetCPUUtilizationPercentage":50})"),
               V1());
  EXPECT_EQ(stored.api_version(), "autoscaling/v2");
  EXPECT_EQ(ToJson(stored["spec"]["metrics"]),
            R"([{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization",)"
            R"("averageUtilization":50}}}])");
  const Object back = FromStored(stored, V1());
  EXPECT_EQ(back["spec"]["targetCPUUtilizationPercentage"].AsInt(), 50);
  EXPECT_FALSE(back["metadata"]["annotations"]);
}

TEST(Conversion, NoMetricIsTheDefaultOne) {
  const Object stored =
      ToStored(Autoscaler("v1", R"("spec":{"scaleTargetRef":{"kind":"Deployment","name":"d"},)"
                                R"("maxReplicas":3})"),
               V1());
  EXPECT_EQ(stored["spec"]["metrics"].at(0)["resource"]["target"]["averageUtilization"].AsInt(),
            80);
}

TEST(Conversion, WhatV1LacksTravelsInAnnotations) {
  const Object stored = Autoscaler(
      "v2",
      R"("spec":{"scaleTargetRef":{"kind":"Deployment","name":"d"},"maxReplicas":3,"metrics":[)"
      R"({"type":"Pods","pods":{"metric":{"name":"rps"},"target":{"type":"AverageValue",)"
      R"("averageValue":"10"}}}],"behavior":{"scaleDown":{"stabilizationWindowSeconds":60}}},)"
      R"("status":{"desiredReplicas":1,"currentMetrics":[{"type":"Resource","resource":)"
      R"({"name":"cpu","current":{"averageUtilization":7,"averageValue":"70m"}}}]})");
  const Object v1 = FromStored(stored, V1());
  EXPECT_EQ(v1["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"].AsString(),
            R"([{"type":"Pods","pods":{"metricName":"rps","targetAverageValue":"10"}}])");
  EXPECT_EQ(v1["status"]["currentCPUUtilizationPercentage"].AsInt(), 7);
  const Object again = ToStored(v1, V1());
  EXPECT_EQ(ToJson(again["spec"]), ToJson(stored["spec"]));
  EXPECT_EQ(ToJson(again["status"]["currentMetrics"]), ToJson(stored["status"]["currentMetrics"]));
  EXPECT_FALSE(again["metadata"]["annotations"]);
}

}  // namespace
}  // namespace sextant::api
