// Shortens the traceback of a failed reward for messages that need only the exception.
#pragma once

#include <string>

namespace troupe::actors {

// For a cause with a Python traceback: the text before it and its last line. Else unchanged.
std::string gist_of(const std::string& cause);

}  // namespace troupe::actors
