// Which of several classes is the default one: the newest that says so, of equals the first by
// name. Source: pkg/volume/util/storageclass.go (GetDefaultClass) at v1.36.3.
#pragma once

#include <string_view>
#include <vector>

#include "api/document.h"

namespace sextant::api {

// Whether the annotation, or its beta form, marks a StorageClass as the default.
bool IsDefaultStorageClass(Value metadata);
// Empty where none is marked.
Object DefaultStorageClass(const std::vector<Object>& classes);

}  // namespace sextant::api
