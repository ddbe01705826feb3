// Known ones are found by their id.
#include "runtime/weights/opened_memory.hpp"

#include "runtime/weights/limits.hpp"

#include <algorithm>

namespace troupe::weights {

core::Result<std::shared_ptr<const OpenedMemory>> OpenedSet::get(
    core::Memory& memory, const core::Memory::SharedHandle& handle, std::uint64_t id) {
  std::lock_guard lock(mutex_);
  const auto known = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const auto& opened) { return opened->id() == id; });
  if (known != kept_.end()) {
    std::rotate(known, known + 1, kept_.end());
    return kept_.back();
  }
  void* const data = memory.open_shared(handle);
  if (data == nullptr) {
    return core::fail(core::ErrorCode::kResources,
                      memory.shared_name() + ": a snapshot of the weights cannot be opened here");
  }
  kept_.push_back(std::make_shared<OpenedMemory>(memory, id, data));
  if (kept_.size() > limits::kWeightMappings_max) kept_.erase(kept_.begin());
  return kept_.back();
}

}  // namespace troupe::weights
