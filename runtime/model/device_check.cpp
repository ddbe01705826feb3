#include "runtime/model/device_check.hpp"

namespace troupe::model {

core::Result<void> check_memory(const ModelSpec& spec,
                                bool adapters,
                                const core::Memory& memory,
                                const std::string& key) {
  if (memory.on_host()) return {};
  const auto refuse = [&](const std::string& what) {
    return core::fail(core::ErrorCode::kConfig,
                      what + " on the processor only; set --" + key + ".device cpu");
  };
  if (spec.moe.any()) return refuse("the experts of " + spec.architecture + " are computed");
  if (adapters) return refuse("low-rank adapters (--" + key + ".lora.rank) are trained");
  return {};
}

}  // namespace troupe::model
