// The shapes of models that people know, for models of random weights.
#pragma once

#include "runtime/model/spec.hpp"

#include <cstdint>
#include <string>

namespace troupe::app {

inline constexpr const char* kModelShapes = "tiny, smollm2-135m, qwen2.5-0.5b or llama3-8b";

// With that many layers, 0: with the shape's own. Error kConfig: it is not one of kModelShapes.
core::Result<model::ModelSpec> spec_of_shape(const std::string& name, std::int64_t layers = 0);

}  // namespace troupe::app
