// The table of configuration keys with what other rooms say about them: the words of objectives,
// estimators and the like, and the rules between these.
#pragma once

#include "runtime/config/table.hpp"

namespace troupe::app {

// Made at the first call; immutable.
const config::Table& run_table();

}  // namespace troupe::app
