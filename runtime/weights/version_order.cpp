// Two sentences.
#include "runtime/weights/version_order.hpp"

#include <string>

namespace troupe::weights {

core::Failure older_than_newest(core::Version offered, core::Version newest) {
  return core::fail(core::ErrorCode::kInvalidArgument,
                    "version " + std::to_string(offered) +
                        " of the weights is older than version " + std::to_string(newest) +
                        ", which was published before it");
}

core::Failure version_not_here(core::Version wanted, std::optional<core::Version> newest) {
  return core::fail(core::ErrorCode::kNotFound,
                    "version " + std::to_string(wanted) + " of the weights is not here; " +
                        (newest ? "the newest is " + std::to_string(*newest)
                                : std::string("none was published")));
}

}  // namespace troupe::weights
