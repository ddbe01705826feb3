#include "runtime/core/thrown.hpp"

#include "runtime/core/memory.hpp"
#include "runtime/core/shortage.hpp"

#include <string>

namespace troupe::core {

Error error_of(const std::exception& thrown, std::string_view where) {
  const std::string what = thrown.what();
  if (dynamic_cast<const OutOfMemory*>(&thrown) != nullptr)
    return advised(ErrorCode::kResources, what, kSmallerRoles);
  if (dynamic_cast<const DeviceError*>(&thrown) != nullptr) {
    return advised(ErrorCode::kResources, "a device failed: " + what,
                   "see `nvidia-smi` and the kernel's log, then start again");
  }
  if (const Shortage shortage = shortage_of(thrown))
    return advised(ErrorCode::kResources, std::string(shortage.what), shortage.advice);
  const Error bug{ErrorCode::kInternal, what};
  return where.empty() ? bug : bug.within(where);
}

}  // namespace troupe::core
