#include "runtime/model/device_check.hpp"

namespace troupe::model {

core::Result<void> check_memory(const ModelSpec& spec,
                                const core::Memory& memory,
                                const std::string& key) {
  if (memory.on_host() || !spec.moe.any()) return {};
  return core::fail(core::ErrorCode::kConfig,
                    "the experts of " + spec.architecture + " are computed on the processor only",
                    "set --" + key + ".device cpu");
}

}  // namespace troupe::model
