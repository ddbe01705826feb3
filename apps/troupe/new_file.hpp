// A text that a command writes for its user: on standard output, or into a file that is not there
// yet.
#pragma once

#include "runtime/core/result.hpp"

#include <string>

namespace troupe::app {

// `out`: the file; empty: standard output. `flag` names it in messages. Errors: kConfig (something
// of that name is there: nothing is overwritten), kResources (it cannot be written).
core::Result<void> write_new(const std::string& out,
                             std::string_view flag,
                             const std::string& text);

// Error kConfig if something of that name is there. For commands that work before they write.
core::Result<void> check_new(const std::string& out, std::string_view flag);

}  // namespace troupe::app
