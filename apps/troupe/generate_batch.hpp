// `troupe generate --data`: samples every prompt of a dataset into a JSON-lines file, one row a
// sample, resumable. See docs/batch.md.
#pragma once

#include "apps/cli/placement.hpp"
#include "apps/cli/sampling_flags.hpp"
#include "apps/troupe/batch/prompt_flags.hpp"
#include "kernels/panels.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <string>

namespace troupe::app {

struct GenerateBatch {
  std::string model, out, output_key = "response";
  std::int64_t samples = 1;
  Placement placement;
  bool tokens = false;  // rows carry token ids and log-probs
  bool overwrite = false;
  kernels::PanelDtype dtype = kernels::PanelDtype::kF32;  // how weights are stored
  SamplingFlags sampling;
  PromptFlags prompts;
  EngineFlags engine;
};

// Errors: what loading and sampling give; kInterrupted after a signal, then the same command goes
// on.
core::Result<void> generate_batch(const GenerateBatch& job);

}  // namespace troupe::app
