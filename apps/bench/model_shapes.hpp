// The shapes of models that people know, for models of random weights.
#pragma once

#include "runtime/model/spec.hpp"

#include <cstdint>
#include <string>

namespace troupe::app {

const std::string& model_shape_names();  // "tiny, ... or llama3-8b"

// With that many layers, 0: with the shape's own. Error kConfig: there is no such shape.
core::Result<model::ModelSpec> spec_of_shape(const std::string& name, std::int64_t layers = 0);

}  // namespace troupe::app
