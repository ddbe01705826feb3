// What an error says about the start of a role.
#pragma once

#include "runtime/core/error.hpp"

namespace troupe::actors::company {

// True for errors that another start of the role would only repeat.
inline bool is_final(core::ErrorCode code) {
  using core::ErrorCode;
  return code == ErrorCode::kConfig || code == ErrorCode::kData || code == ErrorCode::kNumeric ||
         code == ErrorCode::kInvalidArgument || code == ErrorCode::kUnsupported ||
         code == ErrorCode::kNotFound;
}

// True when the node itself answered with this error; false when no answer came.
inline bool was_answered(core::ErrorCode code) {
  using core::ErrorCode;
  return code != ErrorCode::kPeerLost && code != ErrorCode::kClosed &&
         code != ErrorCode::kOverloaded;
}

}  // namespace troupe::actors::company
