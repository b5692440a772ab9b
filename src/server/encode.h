// Answers as bytes: objects, lists, tables and watch events in the form that was negotiated.
// Pure over immutable objects; workers.
#pragma once

#include <string>

#include "api/document.h"
#include "base/clock.h"
#include "server/negotiate.h"
#include "server/operation.h"
#include "server/watch.h"

namespace sextant::server {

// How rows carry their objects: ?includeObject=.
enum class IncludeObject : uint8_t { kMetadata, kNone, kObject };
Result<IncludeObject> ParseIncludeObject(std::string_view query);

struct EncodeContext {
  const Form& form;
  IncludeObject include = IncludeObject::kMetadata;
  Time now;
};

// A whole answer. A Status goes out as it is whatever the form's `as` says.
// Errors: 406 when the form cannot carry this answer.
Result<std::string> EncodeOutcome(const Operation& op, const Outcome& outcome,
                                  const EncodeContext& context);
std::string EncodeStatus(const Error& error, const Form& form);

// One frame of a watch: a JSON line, or a length-prefixed protobuf WatchEvent. `first` of a table
// watch carries the column definitions.
Result<std::string> EncodeWatchFrame(const Operation& op, const WatchUpdate& update, bool first,
                                     const EncodeContext& context);

}  // namespace sextant::server
