// The formats of strings that a custom resource's schema may ask for.
//
// Source: k8s.io/apiextensions-apiserver pkg/apiserver/validation/formats.go at v0.36.3, k8s.io/
// kube-openapi pkg/validation/strfmt. Pure; any thread.
#pragma once

#include <string_view>

namespace sextant::api {

// True if a value of `type` ("" where there is none) can be asked to have this format: others are
// ignored, with a warning.
bool IsKnownFormat(std::string_view format, std::string_view type);

// True for formats of strings that are not known as well.
bool HasFormat(std::string_view text, std::string_view format);

}  // namespace sextant::api
