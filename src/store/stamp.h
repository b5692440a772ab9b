// Puts a revision into an object: the same document with metadata.resourceVersion set.
//
// The tree is copied once into a compact document (about 1 us per KB); nothing of the first is kept
// alive. The field stands where the schema has it (apimachinery pkg/apis/meta/v1/types.go,
// ObjectMeta), so that a canonical document stays canonical. `object` must have metadata.
// Threads: any.
#pragma once

#include "api/document.h"
#include "store/store.h"

namespace sextant::store {

api::Object Stamp(const api::Object& object, Revision revision);

}  // namespace sextant::store
