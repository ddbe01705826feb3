#include "runtime/learn/step_failure.hpp"

#include "runtime/core/thrown.hpp"

#include <c10/util/Exception.h>

namespace troupe::learn {

core::Failure step_failure(const std::exception& thrown, const std::string& where) {
  core::Error error = core::error_of(thrown);
  if (error.code != core::ErrorCode::kInternal) return core::fail(std::move(error));
  const auto* const torch = dynamic_cast<const c10::Error*>(&thrown);
  return core::fail(core::ErrorCode::kInternal,
                    "LibTorch failed " + where + ": " +
                        (torch != nullptr ? torch->what_without_backtrace() : thrown.what()));
}

}  // namespace troupe::learn
