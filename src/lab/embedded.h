// Data files compiled into the program.
#pragma once

#include <string_view>

namespace sextant::lab::embedded {

// A JSON list of objects: default roles, bindings, priority classes (tools/bootstrap_objects.py).
std::string_view BootstrapObjects();

// Feature gates and group versions of Kubernetes 1.36 (tools/known_names.py).
std::string_view KnownNames();

}  // namespace sextant::lab::embedded
