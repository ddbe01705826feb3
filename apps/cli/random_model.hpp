// Models of random weights: the shapes of models that people know, and a model folder with a
// tokenizer of bytes.
#pragma once

#include "runtime/model/params.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe::cli {

const std::string& model_shape_names();  // "tiny, ... or llama3-8b"

// With that many layers, 0: with the shape's own. Error kConfig: there is no such shape.
core::Result<model::ModelSpec> spec_of_shape(const std::string& name, std::int64_t layers = 0);

// `deviation`: of the weights (model::randomise). Errors: those of model::save_model.
core::Result<void> write_random_model(const model::ModelSpec& spec,
                                      std::uint64_t seed,
                                      float deviation,
                                      model::StorageDtype dtype,
                                      const std::filesystem::path& folder);

}  // namespace troupe::cli
