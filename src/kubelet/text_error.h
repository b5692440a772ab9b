// An error that is nothing but its text: what events and statuses of Pods say word for word.
#pragma once

#include <string>
#include <utility>

#include "base/status.h"

namespace sextant::kubelet {

inline Error TextError(std::string text) {
  Error error;
  error.message = std::move(text);
  return error;
}

}  // namespace sextant::kubelet
