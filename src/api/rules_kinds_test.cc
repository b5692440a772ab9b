// Rules that no recorded case asks about, and the pieces below them.
#include "api/rules_kinds.h"

#include <gtest/gtest.h>

#include "api/json.h"
#include "api/registry.h"
#include "api/rules_diff.h"
#include "api/rules_pod.h"

namespace sextant::api {
namespace {

using List = std::vector<std::string>;

List Messages(const FieldErrors& errors) {
  List out;
  for (const Cause& c : errors.causes()) out.push_back(c.field + ": " + c.message);
  return out;
}

const Resource& Find(std::string_view group, std::string_view version, std::string_view plural) {
  const Resource* r = Registry::Builtin().Find({group, version}, plural);
  EXPECT_NE(r, nullptr) << plural;
  return *r;
}

// An object with its kind's defaults.
Object Defaulted(const Resource& resource, std::string_view json) {
  const Result<Object> body = DecodeJson(json, *resource.message);
  EXPECT_TRUE(body) << json;
  Editor edit(*body);
  const Rules& rules = RulesFor(resource);
  if (rules.set_defaults) rules.set_defaults(edit.Root());
  return std::move(edit).Finish(resource.message);
}

TEST(UnifiedDiffTest, Texts) {
  struct Case {
    std::string_view from, to, diff;
  };
  constexpr Case kCases[] = {
      {"a\nb", "a\nb", ""},
      {"a\nb", "a\nc", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"},
      {"a", "", "@@ -1 +1 @@\n-a\n+\n"},
      {"1\n2\n3\n4\n5\n6\n7\n8", "1\n2\n3\n4\n5\n6\n7\n9", "@@ -5,4 +5,4 @@\n 5\n 6\n 7\n-8\n+9\n"},
      {"x\n1\n2\n3\n4\n5\n6\n7\ny", "a\n1\n2\n3\n4\n5\n6\n7\nb",
       "@@ -1,4 +1,4 @@\n-x\n+a\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-y\n+b\n"},
  };
  for (const Case& c : kCases) EXPECT_EQ(UnifiedDiff(c.from, c.to), c.diff) << c.from;
}

TEST(GpuPoolTest, Defaults) {
  const Object pool = Defaulted(Find("sextant.dev", "v1alpha1", "gpupools"),
                                R"({"metadata":{"name":"p"},"spec":{"model":"h100"}})");
  EXPECT_EQ(pool.Path("spec.count").AsInt(), 8);
  EXPECT_EQ(pool.Path("spec.allocation").AsString(), "plugin");
}

TEST(GpuPoolTest, Validation) {
  struct Case {
    std::string_view spec;
    List messages;
  };
  const Case cases[] = {
      {R"({"model":"h100","count":0})", {}},
      {R"({"model":""})", {"spec.model: Required value"}},
      {R"({"model":"a","count":-1})",
       {"spec.count: Invalid value: -1: must be greater than or equal to 0"}},
      {R"({"model":"a","allocation":"both"})",
       {"spec.allocation: Unsupported value: \"both\": supported values: \"dra\", \"plugin\""}},
      {R"({"model":"a","node":{"cpu":"0"}})",
       {"spec.node.cpu: Invalid value: \"0\": must be greater than zero"}},
      {R"({"model":"a","devices":[{"name":"n","count":1},{"name":"n","count":1}]})",
       {"spec.devices[1].name: Duplicate value: \"n\""}},
      {R"({"model":"a","resources":{"rdma/hca":"500m"}})",
       {"spec.resources[rdma/hca]: Invalid value: \"500m\": must be an integer"}},
  };
  const Resource& pools = Find("sextant.dev", "v1alpha1", "gpupools");
  for (const Case& c : cases) {
    FieldErrors errors;
    const Object pool =
        Defaulted(pools, R"({"metadata":{"name":"p"},"spec":)" + std::string(c.spec) + "}");
    RulesFor(pools).validate(pool.root(), errors);
    EXPECT_EQ(Messages(errors), c.messages) << c.spec;
  }
}

TEST(PodDefaultsTest, PullPolicy) {
  struct Case {
    std::string_view image, policy;
  };
  constexpr Case kCases[] = {
      {"busybox", "Always"},
      {"busybox:latest", "Always"},
      {"busybox:1.36", "IfNotPresent"},
      {"reg.example:5000/a/b", "Always"},
      {"reg.example:5000/a/b:2", "IfNotPresent"},
      {"localhost/x", "Always"},
      {"busybox@sha256:0123456789012345678901234567890123456789012345678901234567890123",
       "IfNotPresent"},
      {"Not A Name", "IfNotPresent"},
      {"", "IfNotPresent"},
  };
  for (const Case& c : kCases) {
    const Object pod =
        Defaulted(Find("", "v1", "pods"), R"({"spec":{"containers":[{"name":"c","image":")" +
                                              std::string(c.image) + R"("}]}})");
    EXPECT_EQ(pod["spec"]["containers"].at(0)["imagePullPolicy"].AsString(), c.policy) << c.image;
  }
}

TEST(PodDefaultsTest, RequestsComeFromLimits) {
  const Object pod = Defaulted(
      Find("", "v1", "pods"),
      R"({"spec":{"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}})");
  EXPECT_EQ(pod["spec"]["containers"].at(0)["resources"]["requests"]["nvidia.com/gpu"].AsString(),
            "1");
}

TEST(PodTest, QualityOfService) {
  struct Case {
    std::string_view resources, quality;
  };
  constexpr Case kCases[] = {
      {R"({})", "BestEffort"},
      {R"({"limits":{"nvidia.com/gpu":"1"}})", "BestEffort"},
      {R"({"requests":{"cpu":"1"}})", "Burstable"},
      {R"({"limits":{"cpu":"1","memory":"1Gi"}})", "Guaranteed"},
      {R"({"limits":{"cpu":"2","memory":"1Gi"},"requests":{"cpu":"1"}})", "Burstable"},
  };
  for (const Case& c : kCases) {
    const Object pod =
        Defaulted(Find("", "v1", "pods"), R"({"spec":{"containers":[{"name":"c","resources":)" +
                                              std::string(c.resources) + "}]}}");
    EXPECT_EQ(QosClassOf(pod["spec"]), c.quality) << c.resources;
  }
  // One container without limits, and amounts of the Pod itself, which count instead.
  constexpr Case kSpecs[] = {
      {R"({"containers":[{"resources":{"limits":{"cpu":"1","memory":"1Gi"},)"
       R"("requests":{"cpu":"1","memory":"1Gi"}}},{}]})",
       "Burstable"},
      {R"({"containers":[{}],"resources":{"limits":{"cpu":"1","memory":"1Gi"},)"
       R"("requests":{"cpu":"1","memory":"1Gi"}}})",
       "Guaranteed"},
  };
  for (const Case& c : kSpecs) {
    const auto spec = ParseJson(c.resources);
    ASSERT_TRUE(spec) << c.resources;
    EXPECT_EQ(QosClassOf(spec->root()), c.quality) << c.resources;
  }
}

TEST(PodTest, Grace) {
  struct Case {
    std::string_view pod;
    std::optional<int64_t> asked;
    int64_t grace;
  };
  const Case cases[] = {
      {R"({"spec":{"terminationGracePeriodSeconds":30}})", {}, 0},
      {R"({"spec":{"nodeName":"n","terminationGracePeriodSeconds":30}})", {}, 30},
      {R"({"spec":{"nodeName":"n","terminationGracePeriodSeconds":30}})", 5, 5},
      {R"({"spec":{"nodeName":"n","terminationGracePeriodSeconds":30}})", 0, 0},
      {R"({"spec":{"nodeName":"n","terminationGracePeriodSeconds":-1}})", {}, 1},
      {R"({"spec":{"nodeName":"n"},"status":{"phase":"Succeeded"}})", 7, 0},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(PodGrace(ParseJson(c.pod)->root(), c.asked), c.grace) << c.pod;
  }
}

TEST(NamespaceTest, IsHeldUntilFinalized) {
  const Rules& rules = RulesFor(Find("", "v1", "namespaces"));
  Editor edit(*ParseJson(R"({"metadata":{"name":"a"}})"));
  rules.prepare(edit.Root(), Value());
  rules.on_delete(edit.Root());
  const Object ns = std::move(edit).Finish();
  EXPECT_TRUE(rules.held(ns.root()));
  EXPECT_EQ(ns.Path("status.phase").AsString(), "Terminating");
  EXPECT_EQ(ns["metadata"]["labels"]["kubernetes.io/metadata.name"].AsString(), "a");
  EXPECT_FALSE(rules.held(ParseJson(R"({"spec":{}})")->root()));
}

// Messages as the types of pkg/apis/resource print: no JSON names, null for what is absent.
TEST(ResourceClaimTest, SpecStays) {
  const auto update = [](std::string_view kind, std::string_view plural, std::string_view from,
                         std::string_view to) {
    const Resource& claims = Find("resource.k8s.io", "v1", plural);
    const std::string head = R"({"apiVersion":"resource.k8s.io/v1","kind":")" + std::string(kind) +
                             R"(","metadata":{"name":"c"},"spec":)";
    FieldErrors errors;
    RulesFor(claims).validate_update(Defaulted(claims, head + std::string(to) + "}").root(),
                                     Defaulted(claims, head + std::string(from) + "}").root(),
                                     errors);
    return Messages(errors);
  };
  constexpr std::string_view kOne =
      R"({"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"gpu"}}]}})";
  constexpr std::string_view kTwo =
      R"({"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"gpu","count":2}}]}})";
  EXPECT_EQ(update("ResourceClaim", "resourceclaims", kOne, kOne), List{});
  EXPECT_EQ(
      update("ResourceClaim", "resourceclaims", kOne, kTwo),
      List{R"(spec: Invalid value: {"Devices":{"Requests":[{"Name":"a","Exactly":{)"
           R"("DeviceClassName":"gpu","Selectors":null,"AllocationMode":"ExactCount","Count":2,)"
           R"("AdminAccess":null,"Tolerations":null,"Capacity":null},"FirstAvailable":null}],)"
           R"("Constraints":null,"Config":null}}: field is immutable)"});
  EXPECT_EQ(update("ResourceClaimTemplate", "resourceclaimtemplates", R"({"spec":{}})",
                   R"({"metadata":{"labels":{"a":"b"}},"spec":{}})"),
            List{R"(spec: Invalid value: {"labels":{"a":"b"},"Spec":{"Devices":{"Requests":null,)"
                 R"("Constraints":null,"Config":null}}}: field is immutable)"});
}

TEST(ImmutableFieldsTest, AreThoseOfTheSchema) {
  const Resource& workloads = Find("scheduling.k8s.io", "v1alpha2", "workloads");
  const auto object = [&](std::string_view spec) {
    return Defaulted(workloads, R"({"metadata":{"name":"w"},"spec":)" + std::string(spec) + "}");
  };
  const Object old = object(R"({"podGroupTemplates":[{"name":"a"}]})");
  FieldErrors errors;
  ValidateImmutableFields(old.root(), old.root(), *workloads.message, errors);
  EXPECT_EQ(Messages(errors), List{});
  const Object next = object(R"({"podGroupTemplates":[{"name":"b"}],
                                "controllerRef":{"kind":"Job","name":"j"}})");
  ValidateImmutableFields(next.root(), old.root(), *workloads.message, errors);
  EXPECT_EQ(Messages(errors),
            (List{"spec.controllerRef: Invalid value: null: field is immutable",
                  "spec.podGroupTemplates: Invalid value: null: field is immutable"}));
}

TEST(CronJobTest, Schedules) {
  struct Case {
    std::string_view schedule, why;
  };
  constexpr Case kCases[] = {
      {"*/5 0-6 1,15 jan-mar MON", ""},
      {"@hourly", ""},
      {"@every junk", "failed to parse duration @every junk: time: invalid duration \"junk\""},
      {"60 * * * *", "end of range (60) above maximum (59): 60"},
  };
  const Resource& jobs = Find("batch", "v1", "cronjobs");
  for (const Case& c : kCases) {
    FieldErrors errors;
    const Object job = Defaulted(
        jobs, R"({"metadata":{"name":"j"},"spec":{"schedule":")" + std::string(c.schedule) +
                  R"(","jobTemplate":{"spec":{"template":{"spec":{)"
                  R"("restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}}})");
    RulesFor(jobs).validate_create(job.root(), errors);
    const List want = c.why.empty() ? List{}
                                    : List{"spec.schedule: Invalid value: \"" +
                                           std::string(c.schedule) + "\": " + std::string(c.why)};
    EXPECT_EQ(Messages(errors), want) << c.schedule;
  }
}

TEST(IndexesTest, FormatAndOverlap) {
  EXPECT_EQ(IndexesError("1,3-5,7", 10), "");
  EXPECT_EQ(IndexesError("3-1", 10), "non-increasing order, previous: 3, current: 1");
  EXPECT_EQ(IndexesError("1,1", 10), "non-increasing order, previous: 1, current: 1");
  EXPECT_EQ(IndexesError("12", 10), "too large index: \"12\"");
  EXPECT_EQ(IndexesError("a", 10), "cannot convert string to integer for index: \"a\"");
  EXPECT_EQ(IndexesOverlap("0-2", "4", 10), "");
  EXPECT_EQ(IndexesOverlap("0-2", "2,4", 10),
            "failedIndexes and completedIndexes overlap at index: 2");
}

TEST(AddressTest, Complaints) {
  struct Case {
    std::string_view text, why;
  };
  constexpr Case kAddresses[] = {
      {"10.0.0.1", ""},
      {"2001:db8::1", ""},
      {"010.0.0.1", "must not have leading 0s"},
      {"::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"},
      {"nope", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"},
      {std::string_view("10.0.0.1\0x", 10),
       "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"},
      {"10.0.0.256", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"},
  };
  const At at("ip");
  for (const Case& c : kAddresses) {
    FieldErrors errors;
    ValidateIp(c.text, at, errors);
    EXPECT_EQ(errors.empty(), c.why.empty()) << c.text;
    if (!errors.empty()) {
      EXPECT_NE(errors.causes()[0].message.find(c.why), std::string::npos) << c.text;
    }
  }
  constexpr Case kRanges[] = {
      {"10.0.0.0/24", ""},
      {"2001:db8::/64", ""},
      {"10.0.0.1/24", "must not have bits set beyond the prefix length"},
      {"10.0.0.0/0024", "must not have leading 0s in IP or prefix length"},
      {"10.0.0.0/-1", "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"},
      {"10.0.0.0/", "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"},
      {"10.0.0.0/33", "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"},
      {"10.0.0.0", "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"},
  };
  for (const Case& c : kRanges) {
    FieldErrors errors;
    ValidateCidr(c.text, at, errors);
    EXPECT_EQ(errors.empty(), c.why.empty()) << c.text;
    if (!errors.empty()) {
      EXPECT_NE(errors.causes()[0].message.find(c.why), std::string::npos) << c.text;
    }
  }
}

TEST(WarningsTest, Services) {
  Warnings out;
  WarnOfService(ParseJson(R"({"spec":{"type":"ClusterIP","externalName":"a"}})")->root(), Value(),
                out);
  EXPECT_EQ(out, List{"spec.externalName is ignored when spec.type is not \"ExternalName\""});
}

TEST(WarningsTest, ServiceAccountsOnlyWhenTheAnnotationIsNew) {
  const auto strict = ParseJson(
      R"({"metadata":{"annotations":{"kubernetes.io/enforce-mountable-secrets":"true"}}})");
  Warnings out;
  WarnOfServiceAccount(strict->root(), strict->root(), out);
  EXPECT_EQ(out, List{});
  WarnOfServiceAccount(strict->root(), Value(), out);
  EXPECT_EQ(out,
            List{"metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in "
                 "v1.32+; prefer separate namespaces to isolate access to mounted secrets"});
}

}  // namespace
}  // namespace sextant::api
