// The schemas of one OpenAPI document: every model that something in it refers to, and what those
// refer to. As version 3 writes them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/custom_kind.h"
#include "api/document.h"
#include "api/schema.h"

namespace sextant::server {

class ModelWriter {
 public:
  // `gv` is that of the document; empty: of discovery.
  ModelWriter(const api::Registry& registry, const api::GroupVersion& gv);
  // Of a document with everything in it.
  explicit ModelWriter(const api::Registry& registry);

  bool custom() const { return scope_ == Scope::kCustom; }  // custom kinds are all there is
  bool IsCustom(const std::string& model) const;
  void Need(const std::string& model) { needed_.insert(model); }
  void Write(api::Mut schemas);

 private:
  enum class Scope : uint8_t { kGroup, kCustom, kAll };

  void FindCustom(const api::Resource& resource);
  void FindKinds();
  void Know(const api::Message* message, const api::GroupVersionKind& kind);
  void WriteModel(const std::string& model, api::Mut out);
  void AddKinds(const api::Message& message, api::Mut out) const;
  std::vector<api::GroupVersion> SpokenIn(bool groups) const;

  const api::Registry& registry_;
  const api::GroupVersion gv_;
  Scope scope_;
  std::set<std::string> needed_;
  std::map<std::string, const api::CustomVersion*> custom_, custom_lists_;  // by model
  std::map<const api::Message*, std::vector<api::GroupVersionKind>> kinds_;
};

}  // namespace sextant::server
