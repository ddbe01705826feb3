// Shortens the traceback of a failed reward for messages that need only the exception.
#pragma once

#include <string>

namespace troupe::actors {

// For a cause with a Python traceback: the text before the traceback, and the traceback's last
// line. Any other cause is returned unchanged.
std::string gist_of(const std::string& cause);

}  // namespace troupe::actors
