#include "runtime/learn/torch/step_failure.hpp"

#include "runtime/core/thrown.hpp"
#include "runtime/model/weights_gate.hpp"

#include <c10/util/Exception.h>

namespace troupe::learn {

core::Failure step_failure(const std::exception& thrown, const std::string& where) {
  if (const auto* const gate = dynamic_cast<const model::GateFailure*>(&thrown))
    return core::fail(gate->error());
  core::Error error = core::error_of(thrown);
  if (error.code != core::ErrorCode::kInternal) return core::fail(std::move(error));
  const auto* const torch = dynamic_cast<const c10::Error*>(&thrown);
  return core::fail(core::ErrorCode::kInternal,
                    "LibTorch failed " + where + ": " +
                        (torch != nullptr ? torch->what_without_backtrace() : thrown.what()));
}

}  // namespace troupe::learn
