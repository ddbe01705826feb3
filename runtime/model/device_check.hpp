// Refuses a GPU for models that only the CPU code supports. A pure function.
#pragma once

#include "runtime/core/memory.hpp"
#include "runtime/core/result.hpp"
#include "runtime/model/spec.hpp"

#include <string>

namespace troupe::model {

// kConfig when `memory` is a device's and the model has experts. `key` is the configuration section
// that chose the device, such as "actor".
core::Result<void> check_memory(const ModelSpec& spec,
                                const core::Memory& memory,
                                const std::string& key);

}  // namespace troupe::model
