#include "server/filter.h"

namespace sextant::server {

Result<Filter> Filter::Make(const api::Resource& resource, const Options& options) {
  Filter filter;
  if (!options.label_selector.empty()) {
    ASSIGN_OR_RETURN(filter.labels_, api::LabelSelector::Parse(options.label_selector));
  }
  if (!options.field_selector.empty()) {
    ASSIGN_OR_RETURN(filter.fields_, api::FieldSelector::Parse(options.field_selector));
    RETURN_IF_ERROR(filter.fields_.Bind(resource));
  }
  filter.all_ = filter.labels_.Empty() && filter.fields_.Empty();
  return filter;
}

bool Filter::Matches(api::Value object) const {
  if (all_) return true;
  return labels_.Matches(object["metadata"]["labels"]) && fields_.Matches(object);
}

}  // namespace sextant::server
