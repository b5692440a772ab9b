// Rules of the groups that charts bring beside the core: one row for each complaint.
#include <gtest/gtest.h>

#include "api/json.h"
#include "api/registry.h"
#include "api/rules_kinds.h"

namespace sextant::api {
namespace {

using List = std::vector<std::string>;

struct Row {
  const char* group;
  const char* version;
  const char* plural;
  const char* object;  // as YAML-like JSON
  List want;
  const char* old = nullptr;  // an update of this
};

Object Read(const Resource& resource, std::string_view json) {
  Result<Object> body = DecodeJson(json, *resource.message);
  EXPECT_TRUE(body) << json;
  if (!body) return {};
  Editor edit(*body);
  edit.Root().Set("apiVersion", resource.group_version.ToString());
  edit.Root().Set("kind", resource.kind);
  const Rules& rules = RulesFor(resource);
  if (rules.set_defaults) rules.set_defaults(edit.Root());
  return std::move(edit).Finish(resource.message);
}

List Check(const Row& row) {
  const Resource* resource = Registry::Builtin().Find({row.group, row.version}, row.plural);
  EXPECT_NE(resource, nullptr) << row.plural;
  if (!resource) return {};
  const Rules& rules = RulesFor(*resource);
  const Object object = Read(*resource, row.object);
  FieldErrors errors;
  if (row.old) {
    const Object old = Read(*resource, row.old);
    if (rules.validate) rules.validate(object.root(), errors);
    if (rules.validate_update) rules.validate_update(object.root(), old.root(), errors);
  } else if (rules.validate_create) {
    rules.validate_create(object.root(), errors);
  } else {
    rules.validate(object.root(), errors);
  }
  List out;
  for (const Cause& c : errors.causes()) out.push_back(c.field + ": " + c.message);
  return out;
}

void CheckAll(const std::vector<Row>& rows) {
  for (const Row& row : rows) EXPECT_EQ(Check(row), row.want) << row.plural << " " << row.object;
}

constexpr const char* kNet = "networking.k8s.io";

TEST(NetworkingRules, Policies) {
  const auto policy = [](const char* object, List want) {
    return Row{kNet, "v1", "networkpolicies", object, std::move(want)};
  };
  CheckAll({
      policy(R"({"spec":{"podSelector":{}}})", {}),
      policy(R"({"spec":{"podSelector":{},"ingress":[{"from":[{}]}]}})",
             {"spec.ingress[0].from[0]: Required value: must specify a peer"}),
      policy(
          R"({"spec":{"podSelector":{},"egress":[{"to":[{"podSelector":{},
              "ipBlock":{"cidr":"10.0.0.0/8"}}]}]}})",
          {"spec.egress[0].to[0]: Forbidden: may not specify both ipBlock and another peer"}),
      policy(
          R"({"spec":{"podSelector":{},"egress":[{"to":[{"ipBlock":{"cidr":"10.0.0.0/8",
              "except":["10.1.0.0/16","11.0.0.0/16","10.0.0.0/8"]}}]}]}})",
          {"spec.egress[0].to[0].ipBlock.except[1]: Invalid value: \"11.0.0.0/16\": must be a "
           "strict subset of `cidr`",
           "spec.egress[0].to[0].ipBlock.except[2]: Invalid value: \"10.0.0.0/8\": must be a "
           "strict subset of `cidr`"}),
      policy(R"({"spec":{"podSelector":{},"ingress":[{"ports":[{"protocol":"ICMP","port":0}]}]}})",
             {"spec.ingress[0].ports[0].protocol: Unsupported value: \"ICMP\": supported values: "
              "\"TCP\", \"UDP\", \"SCTP\"",
              "spec.ingress[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, "
              "inclusive"}),
      policy(R"({"spec":{"podSelector":{},"ingress":[{"ports":[{"port":"http","endPort":9}]}]}})",
             {"spec.ingress[0].ports[0].endPort: Invalid value: 9: may not be specified when "
              "`port` is non-numeric"}),
      policy(R"({"spec":{"podSelector":{},"policyTypes":["Both"]}})",
             {"spec.policyTypes[0]: Unsupported value: \"Both\": supported values: \"Ingress\", "
              "\"Egress\""}),
  });
}

TEST(NetworkingRules, OldNetworksStay) {
  const char* bad = R"({"spec":{"podSelector":{},
      "ingress":[{"from":[{"ipBlock":{"cidr":"10.0.0.1/8"}}]}]}})";
  CheckAll({{kNet,
             "v1",
             "networkpolicies",
             bad,
             {"spec.ingress[0].from[0].ipBlock.cidr: Invalid value: \"10.0.0.1/8\": must not have "
              "bits set beyond the prefix length"}},
            {kNet, "v1", "networkpolicies", bad, {}, bad}});
}

TEST(NetworkingRules, Ingresses) {
  const auto ingress = [](const char* object, List want) {
    return Row{kNet, "v1", "ingresses", object, std::move(want)};
  };
  CheckAll({
      ingress(R"({"spec":{}})",
              {"spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"}),
      ingress(R"({"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}})", {}),
      ingress(R"({"spec":{"defaultBackend":{"service":{"name":"s"}}}})",
              {"spec.defaultBackend: Required value: port name or number is required"}),
      ingress(R"({"spec":{"rules":[{"host":"1.2.3.4","http":{"paths":[{"path":"a//b",
                  "pathType":"Prefix","backend":{}}]}}]}})",
              {"spec.rules[0].host: Invalid value: \"1.2.3.4\": must be a DNS name, not an IP "
               "address",
               "spec.rules[0].http.paths[0].path: Invalid value: \"a//b\": must be an absolute "
               "path",
               "spec.rules[0].http.paths[0].path: Invalid value: \"a//b\": must not contain '//'",
               "spec.rules[0].http.paths[0].backend: Invalid value: \"\": resource or service "
               "backend is required"}),
      ingress(R"({"spec":{"rules":[{"http":{"paths":[{"path":"/"}]}}]}})",
              {"spec.rules[0].http.paths[0].pathType: Required value: pathType must be "
               "specified"}),
  });
}

TEST(NetworkingRules, ClassesAndAddresses) {
  CheckAll({
      {kNet, "v1", "ingressclasses", R"({"spec":{"controller":"a.io/b"}})", {}},
      {kNet,
       "v1",
       "ingressclasses",
       R"({"spec":{"controller":"b","parameters":{"kind":"K","name":"n","scope":"Namespace"}}})",
       {"spec.controller: Invalid value: \"b\": must be a domain-prefixed path (such as "
        "\"acme.io/foo\")",
        "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"}},
      {kNet,
       "v1",
       "ipaddresses",
       R"({"spec":{"parentRef":{"name":"x"}}})",
       {"spec.parentRef.resource: Required value"}},
      {kNet,
       "v1",
       "servicecidrs",
       R"({"spec":{"cidrs":["10.0.0.0/8","11.0.0.0/8"]}})",
       {"spec.cidrs: Invalid value: [\"10.0.0.0/8\",\"11.0.0.0/8\"]: may specify no more than one "
        "IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"}},
      {kNet,
       "v1",
       "servicecidrs",
       R"({"spec":{"cidrs":["2001:DB8:0::/64"]}})",
       {"spec.cidrs[0]: Invalid value: \"2001:DB8:0::/64\": must be in canonical form "
        "(\"2001:db8::/64\")"}},
      {kNet,
       "v1",
       "servicecidrs",
       R"({"spec":{"cidrs":["10.0.0.0/8","2001:db8::/64"]}})",
       {},
       R"({"spec":{"cidrs":["10.0.0.0/8"]}})"},
      {kNet,
       "v1",
       "servicecidrs",
       R"({"spec":{"cidrs":["11.0.0.0/8"]}})",
       {"spec.cidrs[0]: Invalid value: \"11.0.0.0/8\": field is immutable"},
       R"({"spec":{"cidrs":["10.0.0.0/8"]}})"},
  });
  EXPECT_EQ(NameIsIp("10.1.2.3", false), Complaints{});
  EXPECT_EQ(NameIsIp("2001:db8::1:0:0:1", false), Complaints{});
  EXPECT_EQ(NameIsIp("2001:db8:0:0:1::1", false),
            Complaints{"must be in canonical form (\"2001:db8::1:0:0:1\")"});
  EXPECT_EQ(NameIsIp("0:0:0:0:0:0:0:0", false), Complaints{"must be in canonical form (\"::\")"});
  EXPECT_EQ(NameIsIp("n", false),
            Complaints{"must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"});
}

TEST(AutoscalingRules, BothVersions) {
  const auto scaler = [](const char* version, const char* object, List want,
                         const char* old = nullptr) {
    return Row{"autoscaling", version, "horizontalpodautoscalers", object, std::move(want), old};
  };
  const char* loose = R"({"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"D","name":"d"}}})";
  CheckAll({
      scaler("v2",
             R"({"spec":{"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"D",
                 "name":"d"}}})",
             {}),
      scaler("v1", loose,
             {"spec.scaleTargetRef.apiVersion: Invalid value: \"\": apiVersion must specify API "
              "group"}),
      scaler("v1", loose, {}, loose),
      scaler("v2",
             R"({"spec":{"minReplicas":0,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"D",
                 "name":"d"}}})",
             {"spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
              "spec.maxReplicas: Required value: must be set and greater than 0",
              "spec.metrics: Forbidden: must specify at least one Object or External metric to "
              "support scaling to zero replicas"}),
      scaler("v1",
             R"({"spec":{"maxReplicas":1,"targetCPUUtilizationPercentage":-1,
                 "scaleTargetRef":{"apiVersion":"apps/v1","kind":"D","name":"d"}}})",
             {"spec.metrics[0].resource.target.averageUtilization: Invalid value: -1: must be "
              "greater than 0"}),
      scaler("v2",
             R"({"spec":{"maxReplicas":1,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"D",
                 "name":"d"},"metrics":[{"type":"Pods","resource":{"name":"cpu","target":{
                 "type":"Value"}}}]}})",
             {"spec.metrics[0].resource.target.averageUtilization: Required value: must set "
              "either a target raw value or a target utilization",
              "spec.metrics[0].pods: Required value: must populate information for the given "
              "metric source"}),
      scaler("v2",
             R"({"spec":{"maxReplicas":1,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"D",
                 "name":"d"},"behavior":{"scaleUp":{"stabilizationWindowSeconds":4000,
                 "policies":[{"type":"X","value":0,"periodSeconds":1801}]}}}})",
             {"spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 4000: must be less "
              "than or equal to 3600",
              "spec.behavior.scaleUp.policies[0].type: Unsupported value: \"X\": supported "
              "values: \"Percent\", \"Pods\"",
              "spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than "
              "zero",
              "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less "
              "than or equal to 1800"}),
  });
}

constexpr const char* kAdmission = "admissionregistration.k8s.io";

TEST(AdmissionRules, Webhooks) {
  const auto hook = [](const char* object, List want, const char* old = nullptr) {
    return Row{kAdmission, "v1", "validatingwebhookconfigurations", object, std::move(want), old};
  };
  const char* some = R"({"webhooks":[{"name":"a.b.c","sideEffects":"Some",
      "admissionReviewVersions":["v1"],"clientConfig":{"url":"https://x/"}}]})";
  CheckAll({
      hook(R"({"webhooks":[{"name":"a.b.c","sideEffects":"None","admissionReviewVersions":["v1"],
               "clientConfig":{"service":{"name":"s","namespace":"n","path":"/a/b"}},
               "rules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["v1"],
               "resources":["pods","pods/status"]}]}]})",
           {}),
      hook(R"({"webhooks":[{"name":"a.b","clientConfig":{},"timeoutSeconds":31}]})",
           {"webhooks[0].name: Invalid value: \"a.b\": should be a domain with at least three "
            "segments separated by dots",
            "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
            "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 "
            "and 30 seconds",
            "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
            "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, "
            "v1beta1"}),
      hook(R"({"webhooks":[{"name":"a.b.c","sideEffects":"None","admissionReviewVersions":["v2"],
               "clientConfig":{"url":"http://me@x?q#f"},"rules":[{"operations":["*","GET"],
               "apiGroups":["*",""],"resources":["a/*","a/b","*","c"]}]}]})",
           {"webhooks[0].rules[0].operations: Invalid value: [\"*\",\"GET\"]: if '*' is present, "
            "must not specify other operations",
            "webhooks[0].rules[0].operations[1]: Unsupported value: \"GET\": supported values: "
            "\"*\", \"CONNECT\", \"CREATE\", \"DELETE\", \"UPDATE\"",
            "webhooks[0].rules[0].apiGroups: Invalid value: [\"*\",\"\"]: if '*' is present, must "
            "not specify other API groups",
            "webhooks[0].rules[0].apiVersions: Required value",
            "webhooks[0].rules[0].resources[1]: Invalid value: \"a/b\": if 'a/*' is present, must "
            "not specify a/b",
            "webhooks[0].rules[0].resources: Invalid value: [\"a/*\",\"a/b\",\"*\",\"c\"]: if '*' "
            "is present, must not specify other resources without subresources",
            "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed "
            "URL scheme; desired format: https://host[/path]",
            "webhooks[0].clientConfig.url: Invalid value: \"me\": user information is not "
            "permitted in the URL",
            "webhooks[0].clientConfig.url: Invalid value: \"f\": fragments are not permitted in "
            "the URL",
            "webhooks[0].clientConfig.url: Invalid value: \"q\": query parameters are not "
            "permitted in the URL",
            "webhooks[0].admissionReviewVersions: Invalid value: [\"v2\"]: must include at least "
            "one of v1, v1beta1"}),
      hook(some, {"webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: "
                  "\"None\", \"NoneOnDryRun\""}),
      hook(some, {}, some),
  });
}

TEST(AdmissionRules, Policies) {
  CheckAll({
      {kAdmission,
       "v1",
       "validatingadmissionpolicies",
       R"({"metadata":{"name":"p"},"spec":{}})",
       {"spec.matchConstraints: Required value",
        "spec.validations: Required value: validations or auditAnnotations must contain at least "
        "one item",
        "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at "
        "least one item"}},
      {kAdmission,
       "v1",
       "validatingadmissionpolicies",
       R"({"metadata":{"name":"p"},"spec":{"paramKind":{"apiVersion":"a/b/c"},
           "variables":[{"name":"in","expression":"1"}],
           "matchConstraints":{"resourceRules":[{"operations":["CREATE"],"apiGroups":[""],
           "apiVersions":["v1"],"resources":["pods"],"resourceNames":["a","a"]}]},
           "validations":[{"expression":" ","message":"a\nb","reason":"Why"}]}})",
       {"spec.paramKind.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: "
        "a/b/c",
        "spec.paramKind.kind: Required value",
        "spec.matchConstraints.resourceRules[0].resourceNames[1]: Duplicate value: \"a\"",
        "spec.variables[0].name: Invalid value: \"in\": must be a valid CEL identifier",
        "spec.validations[0].expression: Required value: expression is not specified",
        "spec.validations[0].message: Invalid value: \"a\\nb\": must not contain line breaks",
        "spec.validations[0].reason: Unsupported value: \"Why\": supported values: \"Forbidden\", "
        "\"Invalid\", \"RequestEntityTooLarge\""}},
      {kAdmission,
       "v1",
       "validatingadmissionpolicybindings",
       R"({"spec":{"paramRef":{"name":"a","selector":{}},"validationActions":["Deny","Warn"]}})",
       {"spec.policyName: Required value",
        "spec.paramRef.name: Forbidden: name and selector are mutually exclusive",
        "spec.paramRef.selector: Forbidden: name and selector are mutually exclusive",
        "spec.paramRef.parameterNotFoundAction: Required value",
        "spec.validationActions: Invalid value: [\"Deny\",\"Warn\"]: must not contain both Deny "
        "and Warn (repeating the same validation failure information in the API response and "
        "headers serves no purpose)"}},
      {kAdmission,
       "v1",
       "mutatingadmissionpolicies",
       R"({"metadata":{"name":"p"},"spec":{"reinvocationPolicy":"Never",
           "matchConstraints":{"resourceRules":[{"operations":["DELETE"],"apiGroups":[""],
           "apiVersions":["v1"],"resources":["pods"]}]},
           "mutations":[{"patchType":"JSONPatch","applyConfiguration":{"expression":"a"}}]}})",
       {"spec.matchConstraints.resourceRules.operations: Unsupported value: \"DELETE\": supported "
        "values: \"*\", \"CONNECT\", \"CREATE\", \"UPDATE\"",
        "spec.mutations[0].applyConfiguration: Invalid value: \"{applyConfiguration}\": must not "
        "be specified when patchType is JSONPatch",
        "spec.mutations[0].jsonPatch: Required value: must be specified when patchType is "
        "JSONPatch"}},
  });
}

TEST(CertificateRules, Requests) {
  CheckAll({{"certificates.k8s.io",
             "v1",
             "certificatesigningrequests",
             R"({"spec":{"request":"eA==","signerName":"a/B","usages":["x","x"],
                 "expirationSeconds":599}})",
             {"spec.request: Invalid value: \"eA==\": PEM block type must be CERTIFICATE REQUEST",
              "spec.usages[0]: Unsupported value: \"x\": supported values: \"any\", \"cert "
              "sign\", \"client auth\", \"code signing\", \"content commitment\", \"crl sign\", "
              "\"data encipherment\", \"decipher only\", \"digital signature\", \"email "
              "protection\", \"encipher only\", \"ipsec end system\", \"ipsec tunnel\", \"ipsec "
              "user\", \"key agreement\", \"key encipherment\", \"microsoft sgc\", \"netscape "
              "sgc\", \"ocsp signing\", \"s/mime\", \"server auth\", \"signing\", "
              "\"timestamping\"",
              "spec.usages[1]: Unsupported value: \"x\": supported values: \"any\", \"cert "
              "sign\", \"client auth\", \"code signing\", \"content commitment\", \"crl sign\", "
              "\"data encipherment\", \"decipher only\", \"digital signature\", \"email "
              "protection\", \"encipher only\", \"ipsec end system\", \"ipsec tunnel\", \"ipsec "
              "user\", \"key agreement\", \"key encipherment\", \"microsoft sgc\", \"netscape "
              "sgc\", \"ocsp signing\", \"s/mime\", \"server auth\", \"signing\", "
              "\"timestamping\"",
              "spec.usages[1]: Duplicate value: \"x\"",
              "spec.signerName: Invalid value: \"a\": should be a domain with at least two "
              "segments separated by dots",
              "spec.signerName: Invalid value: \"B\": validating label \"B\": a lowercase RFC "
              "1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
              "must start and end with an alphanumeric character (e.g. 'example.com', regex used "
              "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*"
              "[a-z0-9])?)*')",
              "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than "
              "600 seconds (10 minutes)"}}});
}

constexpr const char* kResource = "resource.k8s.io";

TEST(DeviceRules, Claims) {
  const auto claim = [](const char* object, List want, const char* old = nullptr) {
    return Row{kResource, "v1", "resourceclaims", object, std::move(want), old};
  };
  const char* good = R"({"spec":{"devices":{"requests":[{"name":"a",
      "exactly":{"deviceClassName":"gpu.nvidia.com"}}]}}})";
  CheckAll({
      claim(good, {}),
      claim(R"({"spec":{"devices":{"requests":[{"name":"a"},{"name":"a","exactly":{}}],
                "constraints":[{"requests":["b"],"matchAttribute":"model"}],
                "config":[{"requests":["a"]}]}}})",
            {"spec.devices.requests[0]: Required value: exactly one of `exactly` or "
             "`firstAvailable` is required",
             "spec.devices.requests[1].exactly.deviceClassName: Required value",
             "spec.devices.requests[1]: Duplicate value: \"a\"",
             "spec.devices.constraints[0].requests[0]: Invalid value: \"b\": must be the name of a "
             "request in the claim or the name of a request and a subrequest separated by '/'",
             "spec.devices.constraints[0].matchAttribute: Invalid value: \"model\": a fully "
             "qualified name must be a domain and a name separated by a slash",
             "spec.devices.config[0].opaque: Required value"}),
      claim(R"({"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"c",
                "allocationMode":"All","count":2,"selectors":[{}],
                "tolerations":[{"operator":"Exists","value":"v","effect":"Some"}]}}]}}})",
            {"spec.devices.requests[0].exactly.selectors[0].cel: Required value",
             "spec.devices.requests[0].exactly.count: Invalid value: 2: must not be specified when "
             "allocationMode is 'All'",
             "spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: \"v\": must "
             "be empty for operator `Exists`",
             "spec.devices.requests[0].exactly.tolerations[0].effect: Unsupported value: "
             "\"Some\": supported values: \"NoExecute\", \"NoSchedule\", \"None\""}),
      claim(R"({"spec":{}})",
            {"spec: Invalid value: "
             "{\"Devices\":{\"Requests\":null,\"Constraints\":null,\"Config\":null}}: "
             "field is immutable"},
            good),
  });
}

TEST(DeviceRules, ClassesAndSlices) {
  CheckAll({
      {kResource,
       "v1",
       "deviceclasses",
       R"({"spec":{"extendedResourceName":"cpu","config":[{"opaque":{"driver":"d.io",
           "parameters":[]}}]}})",
       {"spec.config[0].opaque.parameters: Invalid value: \"<value omitted>\": must be a valid "
        "JSON object",
        "spec.extendedResourceName: Invalid value: \"cpu\": must be a valid extended resource "
        "name"}},
      {kResource,
       "v1",
       "resourceslices",
       R"({"spec":{"driver":"d.io","nodeName":"n","pool":{"name":"n","resourceSliceCount":1},
           "devices":[{"name":"gpu-0","attributes":{"model":{"string":"H200"},
           "driverVersion":{"version":"1.2.3"}},"capacity":{"memory":{"value":"1Gi"}}}]}})",
       {}},
      {kResource,
       "v1",
       "resourceslices",
       R"({"spec":{"driver":"","allNodes":true,"nodeName":"n","pool":{},
           "devices":[{"name":"G","nodeName":"m","attributes":{"a/b":{"version":"1"},"c":{}}}]}})",
       {"spec.driver: Required value", "spec.pool.name: Required value",
        "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
        "spec: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of `nodeName`, "
        "`nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields "
        "are set",
        "spec.devices[0].name: Invalid value: \"G\": a lowercase RFC 1123 label must consist of "
        "lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
        "character (e.g. 'my-name',  or '123-abc', regex used for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        "spec.devices[0].attributes[a/b].version: Invalid value: \"1\": must be a string "
        "compatible with semver.org spec 2.0.0",
        "spec.devices[0].attributes[c]: Invalid value: \"\": exactly one value must be specified",
        "spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only "
        "be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"}},
      {kResource,
       "v1",
       "resourceslices",
       R"({"spec":{"driver":"e.io","allNodes":true,"pool":{"name":"n","resourceSliceCount":1}}})",
       {"spec.driver: Invalid value: \"e.io\": field is immutable"},
       R"({"spec":{"driver":"d.io","allNodes":true,"pool":{"name":"n","resourceSliceCount":1}}})"},
  });
}

}  // namespace
}  // namespace sextant::api
