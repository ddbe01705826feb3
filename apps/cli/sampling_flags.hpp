// The sampling flags that `generate` and `chat` share, and what they mean for the engine.
#pragma once

#include "apps/cli/flags.hpp"
#include "runtime/engine/types.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::app {

struct SamplingFlags {
  std::int64_t max_new_tokens = 256;
  double temperature = 1.0;
  double top_p = 1.0;
  std::int64_t top_k = 0;
  double min_p = 0.0;
  std::vector<std::string> stop;
  std::int64_t seed = 42;

  // Appends the flags that fill this object, which must outlive their parsing.
  void add_to(std::vector<Flag>& flags);

  // Escapes (\n) in stop strings are resolved.
  engine::SamplingParams params() const;
};

}  // namespace troupe::app
