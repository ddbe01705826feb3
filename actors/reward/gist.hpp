// The cause of a failure in one line: a reward that raises gives a whole traceback, which is wanted
// once.
#pragma once

#include <string>

namespace troupe::actors {

// A traceback without its frames: what comes before it and its last line. Other causes as they are.
std::string gist_of(const std::string& cause);

}  // namespace troupe::actors
