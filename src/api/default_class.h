// Which of several classes (of storage, of ingresses) is the default one: the newest that says so,
// of equals the first by name. Source: pkg/volume/util/storageclass.go (GetDefaultClass),
// plugin/pkg/admission/network/defaultingressclass at v1.36.3.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "api/document.h"

namespace sextant::api {

// The annotations that mark a default class when they are "true".
inline constexpr std::string_view kDefaultStorageMarks[] = {
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class"};
inline constexpr std::string_view kDefaultIngressMarks[] = {
    "ingressclass.kubernetes.io/is-default-class"};

bool IsDefaultClass(Value metadata, std::span<const std::string_view> marks);
// Empty where none is marked.
Object DefaultClass(const std::vector<Object>& classes, std::span<const std::string_view> marks);

}  // namespace sextant::api
