// metav1.Status and HTTP answers as Errors. Threads: any.
#pragma once

#include <string_view>

#include "api/document.h"
#include "base/status.h"

namespace sextant::client {

bool IsStatus(api::Value object);  // kind Status, of whatever outcome

// The Error that a Status of failure tells; `http_status` counts where it has no code.
Error ErrorFromStatus(api::Value status, int http_status);

// The Error of an HTTP answer outside 2xx: its Status, or for any other body the words that
// client-go has for the code (apimachinery pkg/api/errors, NewGenericServerResponse).
Error ErrorFromAnswer(int http_status, std::string_view method, std::string_view body);

}  // namespace sextant::client
