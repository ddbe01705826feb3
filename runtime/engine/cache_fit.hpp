// What groups of samples need of an engine's memory for keys and values, told before there is an
// engine. Pure functions.
#pragma once

#include "kernels/shapes.hpp"
#include "runtime/engine/types.hpp"
#include "runtime/model/spec.hpp"

#include <cstdint>

namespace troupe::engine {

// A group of samples of one prompt, in tokens.
struct GroupSize {
  std::int64_t prompt = 1;
  std::int64_t samples = 1;
  std::int64_t new_tokens = 1;
};

struct CacheFit {
  std::int64_t wanted = 0;   // blocks that the group needs, to begin and to end each of its samples
  std::int64_t blocks = 0;   // that the cache has
  std::int64_t at_once = 0;  // samples that run together where all groups are of this size
  std::uint64_t block_bytes = 0;

  bool fits() const { return wanted <= blocks; }
  std::uint64_t wanted_bytes() const { return static_cast<std::uint64_t>(wanted) * block_bytes; }
};

CacheFit cache_fit(const model::ModelSpec& spec,
                   kernels::KvDtype kv,
                   const EngineLimits& limits,
                   const GroupSize& group);

// The longest prompt and response, together, of which the cache holds one sample; at most
// `context`.
std::int64_t longest_sample(const model::ModelSpec& spec,
                            kernels::KvDtype kv,
                            const EngineLimits& limits,
                            std::int64_t context);

}  // namespace troupe::engine
