// A copy of a state file while it is in use, and back: what `sextant snapshot` keeps.
//
// The copy is one SQLite file: the state at one revision, and beside it the texts that the caller
// adds (table snapshot). Blocking; any thread but the core's. Errors: sentences for a person.
#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "store/store.h"

namespace sextant::store {

using Extras = std::map<std::string, std::string>;  // by name

// Copies the state file `from`, which another process may be writing, to `to`: all that was durable
// at one moment. `to` is made or replaced whole, mode 0600. Returns the revision of the copy.
Result<Revision> CopyState(const std::string& from, const std::string& to, const Extras& extras);

// Makes of the copy `from` the state file `to`, which must not be there, and returns the extras.
// Every object in it has been read.
Result<Extras> UnpackCopy(const std::string& from, const std::string& to,
                          const api::Registry* registry);

}  // namespace sextant::store
