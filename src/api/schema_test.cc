#include "api/schema.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "api/registry.h"

namespace sextant::api {
namespace {

const Message& Core(std::string_view name) {
  const Message* m = Registry::Builtin().FindMessage("io.k8s.api.core.v1." + std::string(name));
  EXPECT_NE(m, nullptr) << name;
  return *m;
}

const Field& FieldOf(std::string_view message, std::string_view name) {
  const Field* f = Core(message).FindField(name);
  EXPECT_NE(f, nullptr) << message << "." << name;
  return *f;
}

// The counts are committed, so that a field cannot come or go unseen.
TEST(SchemaTest, FieldCountsOfEveryPackage) {
  std::map<std::string, std::pair<int, int>> counts;
  for (const Message& m : BuiltinMessages()) {
    auto& [messages, fields] = counts[std::string(m.name.substr(0, m.name.rfind('.')))];
    ++messages;
    for (const Field& f : m.fields) fields += f.via == nullptr;
  }
  std::ostringstream have;
  for (const auto& [package, n] : counts) {
    have << package << " " << n.first << " " << n.second << "\n";
  }
  std::ifstream file(SEXTANT_SOURCE_DIR "/src/api/field_counts.txt");
  std::stringstream want;
  want << file.rdbuf();
  EXPECT_EQ(have.str(), want.str());
}

TEST(SchemaTest, EveryFieldIsFoundByNameAndNumber) {
  for (const Message& m : BuiltinMessages()) {
    std::set<std::string_view> names;
    for (const Field& f : m.fields) {
      if (f.via == nullptr && f.number != 0) {
        EXPECT_EQ(m.FindNumber(f.number), &f) << m.name << "." << f.name;
      }
      if (f.inlined) continue;
      EXPECT_TRUE(names.insert(f.name).second) << m.name << "." << f.name << " twice";
      EXPECT_EQ(m.FindField(f.name), &f) << m.name << "." << f.name;
      EXPECT_EQ(m.FindField(std::string(f.name) + "x"), nullptr);
    }
    EXPECT_EQ(m.FindField(""), nullptr);
    EXPECT_EQ(m.FindNumber(0), nullptr);
    EXPECT_EQ(m.FindNumber(10000), nullptr);
  }
}

TEST(SchemaTest, LookupWithoutIndexScans) {
  Message copy = Core("Volume");
  copy.index = nullptr;
  for (const Field& f : copy.fields) {
    if (!f.inlined) {
      EXPECT_EQ(copy.FindField(f.name), &f);
    }
    if (f.via == nullptr) {
      EXPECT_EQ(copy.FindNumber(f.number), &f);
    }
  }
  EXPECT_EQ(copy.FindField("volumeSource"), nullptr);
}

TEST(SchemaTest, FieldsHaveWhatTheirTypeNeeds) {
  for (const Message& m : BuiltinMessages()) {
    for (const Field& f : m.fields) {
      const std::string at = std::string(m.name) + "." + std::string(f.name);
      EXPECT_EQ(f.type == Type::kMessage, f.message != nullptr) << at;
      EXPECT_FALSE(f.name.empty()) << at;
      EXPECT_FALSE(f.go_name.empty()) << at;
      EXPECT_EQ(f.list_type == ListType::kMap, !f.list_map_keys.empty()) << at;
      for (std::string_view key : f.list_map_keys) {
        EXPECT_NE(f.message->FindField(key), nullptr) << at << ": key " << key;
      }
      if (!f.patch_merge_key.empty() && f.message != nullptr) {
        EXPECT_NE(f.message->FindField(f.patch_merge_key), nullptr) << at;
      }
      if (f.via != nullptr) {
        EXPECT_TRUE(f.via->inlined) << at;
      }
    }
  }
}

TEST(SchemaTest, PresenceFollowsGo) {
  struct Case {
    const char* message;
    const char* field;
    Presence presence;
    bool pointer;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"Pod", "metadata", Presence::kAlways, false},  // a struct: omitempty means nothing
           {"Pod", "status", Presence::kAlways, false},
           {"PodSpec", "containers", Presence::kAlways, false},  // no omitempty: null when nil
           {"PodSpec", "nodeName", Presence::kOmitEmpty, false},
           {"PodSpec", "priority", Presence::kPointer, true},
           {"PodSpec", "securityContext", Presence::kPointer, true},
           {"Container", "name", Presence::kAlways, false},
           {"Container", "resources", Presence::kAlways, false},
           {"ServicePort", "targetPort", Presence::kAlways, false},
           {"PodCondition", "lastProbeTime", Presence::kAlways, false},
           {"ContainerStatus", "started", Presence::kPointer, true},
           {"ContainerStatus", "restartCount", Presence::kAlways, false},
           {"EnvVar", "value", Presence::kOmitEmpty, false},
       }) {
    const Field& f = FieldOf(c.message, c.field);
    EXPECT_EQ(f.presence, c.presence) << c.message << "." << c.field;
    EXPECT_EQ(f.pointer, c.pointer) << c.message << "." << c.field;
  }
  const Message* meta =
      Registry::Builtin().FindMessage("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
  const Field* created = meta->FindField("creationTimestamp");
  EXPECT_EQ(created->presence, Presence::kPointer);  // omitzero
  EXPECT_FALSE(created->pointer);
  EXPECT_EQ(created->type, Type::kTime);
}

TEST(SchemaTest, GoTypes) {
  EXPECT_EQ(FieldOf("PodSpec", "restartPolicy").go_type, "v1.RestartPolicy");
  EXPECT_EQ(FieldOf("PersistentVolumeClaimSpec", "accessModes").go_type,
            "[]v1.PersistentVolumeAccessMode");
  EXPECT_EQ(FieldOf("ResourceRequirements", "limits").go_type, "v1.ResourceList");
  EXPECT_EQ(FieldOf("PodSpec", "nodeName").go_type, "");    // string
  EXPECT_EQ(FieldOf("PodSpec", "containers").go_type, "");  // []v1.Container
}

TEST(SchemaTest, ListsAndPatchKeys) {
  const Field& ports = FieldOf("ServiceSpec", "ports");
  EXPECT_EQ(ports.list_type, ListType::kMap);
  ASSERT_EQ(ports.list_map_keys.size(), 2U);
  EXPECT_EQ(ports.list_map_keys[0], "port");
  EXPECT_EQ(ports.list_map_keys[1], "protocol");
  EXPECT_EQ(ports.patch_merge_key, "port");
  EXPECT_TRUE(ports.patch_merge);

  const Field& volumes = FieldOf("PodSpec", "volumes");
  EXPECT_EQ(volumes.patch_merge_key, "name");
  EXPECT_TRUE(volumes.patch_merge);
  EXPECT_TRUE(volumes.patch_retain_keys);

  EXPECT_TRUE(FieldOf("PodSpec", "nodeSelector").map_atomic);
  EXPECT_TRUE(Core("NodeSelector").atomic);
  EXPECT_EQ(FieldOf("Container", "args").list_type, ListType::kAtomic);
  const Field& protocol = FieldOf("ContainerPort", "protocol");
  EXPECT_EQ(protocol.default_json, "\"TCP\"");
  EXPECT_EQ(protocol.enum_values.size(), 3U);
  EXPECT_TRUE(FieldOf("ContainerPort", "containerPort").required);
  EXPECT_EQ(FieldOf("ContainerPort", "containerPort").format, "int32");
}

TEST(SchemaTest, InlinedMessages) {
  const Field* source = Core("Volume").FindNumber(2);
  ASSERT_NE(source, nullptr);
  EXPECT_TRUE(source->inlined);
  EXPECT_EQ(source->name, "volumeSource");
  const Field& empty_dir = FieldOf("Volume", "emptyDir");
  EXPECT_EQ(empty_dir.via, source);
  EXPECT_EQ(empty_dir.number, source->message->FindField("emptyDir")->number);
  EXPECT_EQ(FieldOf("Probe", "httpGet").via, Core("Probe").FindNumber(1));
  EXPECT_EQ(FieldOf("EphemeralContainer", "image").via->name, "ephemeralContainerCommon");
}

TEST(SchemaTest, FieldsStandInGosOrder) {
  const auto fields = Core("Pod").fields;
  ASSERT_EQ(fields.size(), 5U);
  const char* want[] = {"kind", "apiVersion", "metadata", "spec", "status"};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(fields[i].name, want[i]);
  EXPECT_EQ(fields[0].number, 0U);
  EXPECT_EQ(fields[2].go_name, "ObjectMeta");
}

TEST(SchemaTest, DescriptionsComeFromComments) {
  EXPECT_FALSE(Core("Pod").description.empty());
  EXPECT_FALSE(FieldOf("ResourceRequirements", "limits").description.empty());
  // From the inlined source.
  EXPECT_FALSE(FieldOf("Volume", "emptyDir").description.empty());
  // From the field's message.
  EXPECT_EQ(FieldOf("Pod", "metadata").description, FieldOf("Node", "metadata").description);
  EXPECT_FALSE(FieldOf("Pod", "metadata").description.empty());
  EXPECT_FALSE(FieldOf("Pod", "kind").description.empty());
}

TEST(SchemaTest, OnlyJsonWhereKubernetesHasNoProtobuf) {
  const Registry& r = Registry::Builtin();
  EXPECT_TRUE(r.FindKindMessage({"meta.k8s.io", "v1"}, "Table")->json_only);
  EXPECT_TRUE(
      r.FindKindMessage({"apiextensions.k8s.io", "v1"}, "CustomResourceDefinition")->json_only);
  EXPECT_FALSE(r.FindKindMessage({"", "v1"}, "Pod")->json_only);
  EXPECT_FALSE(r.FindKindMessage({"", "v1"}, "Status")->json_only);
}

}  // namespace
}  // namespace sextant::api
