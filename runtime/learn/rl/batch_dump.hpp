// Writes the mini-batch that made a run stop to a file, for debugging: one JSON object per sample.
// Called at most once per run, on the trainer's thread, when the run is already lost.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/learn/rl/update_context.hpp"

#include <filesystem>
#include <vector>

namespace troupe::learn {

// Writes the file `path`. Each line has: update, slot, sample (index in its group), prompt, tokens,
// versions, score (before shaping), behaviour (l_mu), logprobs (under the current weights),
// advantages, micro_batch and loss (of its micro-batch). Numbers that are not finite are null.
// `losses` has one entry for each micro-batch that ran; the loss of the others is null.
//   logprobs  [group][sample][token], empty where the model could not be run
core::Result<void> dump_batch(const std::filesystem::path& path,
                              const UpdateContext& update,
                              const MiniBatch& mini,
                              const TokenTable<float>& logprobs,
                              const std::vector<double>& losses);

}  // namespace troupe::learn
