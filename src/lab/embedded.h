// Data files compiled into the program.
#pragma once

#include <string_view>

namespace sextant::lab::embedded {

// A JSON list of objects: default roles, bindings, priority classes (tools/bootstrap_objects.py).
std::string_view BootstrapObjects();

}  // namespace sextant::lab::embedded
