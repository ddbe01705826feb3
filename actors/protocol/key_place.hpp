// Keys that no file of a run holds, by the places that its configuration names. Any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <string>

namespace troupe::actors {

// The key at `place`, "env:NAME" or "file:PATH" (its first line); "" for "". `what`: it is, for
// errors ("the judge's API key"); `flag`: by which its place is given. Errors (kConfig), which do
// not quote the key: no such variable or file, a file that others may read, a key with blanks.
core::Result<std::string> read_key(const std::string& place,
                                   const std::string& what,
                                   const std::string& flag);

}  // namespace troupe::actors
