#include "runtime/async/thrown.hpp"

#include "runtime/core/thrown.hpp"

#include <boost/system/system_error.hpp>

#include <system_error>

namespace troupe::async {

core::Error error_of(const std::exception& thrown, std::string_view where) {
  if (const auto* failed = dynamic_cast<const boost::system::system_error*>(&thrown)) {
    core::Error error = core::error_of(std::system_error(failed->code()), where);
    if (error.code == core::ErrorCode::kResources) return error;
  }
  return core::error_of(thrown, where);
}

}  // namespace troupe::async
