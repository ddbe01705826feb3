// The counts of a model under training in its saved state: trainer_state.json. Plain values.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace troupe::learn {

struct StateCounts {
  core::Version version = 0;
  std::int64_t adam_steps = 0, skipped_in_row = 0;
  // In which its gradients were added (train.lanes), so that whoever goes on from it can compare. A
  // state goes on with any number of lanes, but not to the same bits.
  std::int64_t lanes = 1;
  int ranks = 0;                               // that wrote the tensors in parts; 0: they are whole
  std::string optim = "adamw";                 // with f32 moments
  std::optional<std::uint32_t> base_crc = {};  // with LoRA: of the weights under the adapters
};

core::Result<void> write_counts(const std::filesystem::path& folder, const StateCounts& counts);
// Errors: kNotFound, kData.
core::Result<StateCounts> read_counts(const std::filesystem::path& folder);

}  // namespace troupe::learn
