// Which objects a list or watch tells: label and field selectors, compiled once.
// Immutable; any thread.
#pragma once

#include "api/document.h"
#include "api/schema.h"
#include "api/selector.h"
#include "base/status.h"
#include "server/operation.h"

namespace sextant::server {

class Filter {
 public:
  // Errors: 400 as the API server words them, also for fields that the kind does not select by.
  static Result<Filter> Make(const api::Resource& resource, const Options& options);

  bool Matches(api::Value object) const;
  // The one name that it lets through; empty: any.
  std::string_view name() const { return fields_.Exact("metadata.name"); }
  bool all() const { return all_; }  // no selector at all

 private:
  api::LabelSelector labels_;
  api::FieldSelector fields_;
  bool all_ = true;
};

}  // namespace sextant::server
