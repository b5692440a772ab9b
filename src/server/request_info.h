// From an HTTP method, path and query to the terms of the pipeline (apiserver's RequestInfo and
// ListOptions, CreateOptions, ...). Pure functions; any thread.
#pragma once

#include <string_view>

#include "base/status.h"
#include "server/operation.h"

namespace sextant::server {

// `path` is as sent, without the query. Never fails: what is no resource path is a non-resource
// request, as in the real server. `verb` still says "get" for list and watch: see ResolveVerb.
RequestInfo ParseRequest(std::string_view method, std::string_view path);

// Makes get into list or watch, delete into deletecollection, where there is no name, and notes
// what is selected.
void ResolveVerb(const Options& options, RequestInfo& info);

// What authorization has to know of a field selector; metadata.name=x names the object.
void NoteFieldSelector(std::string_view selector, RequestInfo& info);

// Errors: a parameter that does not parse, in the API server's words.
Result<Options> ParseOptions(std::string_view query);

}  // namespace sextant::server
