// What api_gen knows after reading the .proto files: the form between descriptors and output.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "api/schema.h"

namespace sextant::api::gen {

struct FieldModel {
  std::string name, go_name, go_type, default_json, merge_key, description;
  std::vector<std::string> list_map_keys, enum_values;
  uint32_t number = 0;
  int message = -1;  // index into Model::messages
  uint16_t flags = 0;
  Type type = Type::kString;
  Shape shape = Shape::kSingle;
  Presence presence = Presence::kOmitEmpty;
  ListType list_type = ListType::kUnset;
};

struct MessageModel {
  std::string name;     // "io.k8s.api.core.v1.Pod"
  std::string simple;   // "Pod"
  std::string file;     // "core_v1"
  std::string go_name;  // "v1.Pod"
  std::string group, version, kind, description, unions;
  uint8_t flags = 0;
  std::vector<FieldModel> fields;
};

struct SubresourceModel {
  std::string name, group, version, kind;
  int message = -1;
  std::vector<std::string> verbs;
};

struct ResourceModel {
  std::string group, version, plural, singular, kind, list_kind, hash, storage;
  std::vector<std::string> short_names, categories, verbs, selectable;
  int message = -1;
  bool namespaced = true;
  bool review = false;
  std::vector<SubresourceModel> subresources;
};

struct Model {
  std::vector<MessageModel> messages;  // in the order of the files and of their messages
  std::vector<ResourceModel> resources;
  std::unordered_map<std::string, int> by_kind;  // "apps/v1 Deployment" -> message
};

// Both end the program with a message when the input is wrong: this is a build step.
[[noreturn]] void Die(const std::string& message);
Model ReadModel(const std::string& descriptor_set, const std::vector<std::string>& resource_files);

std::string RenderTables(const Model& model);
// The typed views and builders of one .proto file ("core_v1").
std::string RenderViews(const Model& model, const std::string& file);
std::string RenderBuilders(const Model& model, const std::string& file);

}  // namespace sextant::api::gen
