// Refuses a GPU for models that only the CPU code supports. A pure function.
#pragma once

#include "runtime/core/memory.hpp"
#include "runtime/core/result.hpp"
#include "runtime/model/spec.hpp"

#include <string>

namespace troupe::model {

// kConfig when numbers in `memory` cannot be those of such a model: experts, or with `adapters`
// low-rank adapters, on a device. `key` is the section of the configuration whose device it is:
// "actor".
core::Result<void> check_memory(const ModelSpec& spec,
                                bool adapters,
                                const core::Memory& memory,
                                const std::string& key);

}  // namespace troupe::model
