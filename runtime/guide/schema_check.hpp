// What a guide by a JSON schema cannot keep, though llguidance takes it: a name that `properties`
// does not list may be written again, so that a text may hold fewer properties than pairs. A pure
// function; any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <string_view>

namespace troupe::guide {

// Error kInvalidArgument: the schema has a `minProperties` that one name, written again, could
// meet. Ok for a text that is no JSON, of which the library says more.
core::Result<void> check_schema(std::string_view schema);

}  // namespace troupe::guide
