// Errors as the Status objects that the API answers with, and back. Pure; any thread.
#pragma once

#include "api/document.h"
#include "base/status.h"

namespace sextant::server {

// {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",...}
api::Object StatusObject(const Error& error);

}  // namespace sextant::server
