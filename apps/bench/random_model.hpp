// A model folder of random weights with a tokenizer of bytes.
#pragma once

#include "runtime/model/params.hpp"

#include <cstdint>
#include <filesystem>

namespace troupe::app {

// `deviation`: of the weights (model::randomise). Errors: those of model::save_model.
core::Result<void> write_random_model(const model::ModelSpec& spec,
                                      std::uint64_t seed,
                                      float deviation,
                                      model::StorageDtype dtype,
                                      const std::filesystem::path& folder);

}  // namespace troupe::app
