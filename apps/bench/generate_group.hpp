// The part of `troupe bench generate` about groups: how much longer a group of n samples takes
// until all have their first token than one sample alone. The prompt is computed once for all, so
// the ratio should be close to 1. Runs on the caller's thread and the engine's team.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/engine/driver.hpp"

#include <cstdint>

namespace troupe::app {

struct GroupFigures {
  double one_s = 0;  // until the first token of one sample; medians
  double all_s = 0;  // until the first tokens of all samples of a group
  double ratio() const { return all_s / one_s; }
};

// New prompts each time, one sample and a group in turn. Errors: those of the engine; kInternal
// when the prompt was computed more than once.
core::Result<GroupFigures> time_first_tokens(engine::EngineDriver& driver,
                                             std::int32_t samples,
                                             std::int64_t prompt_tokens);

}  // namespace troupe::app
