// What a checkpoint of supervised training knows of its rows: how many places of their order were
// passed over, because the run diverged on them and went back (train.on_divergence).
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>

namespace troupe::actors::supervised {

// Writes RUN/ckpt/step_N/rows_state.json; nothing when no place was passed over.
core::Result<void> write_rows_state(const std::filesystem::path& folder, std::uint64_t passed_over);
// 0 without such a file. Error kData: it is damaged.
core::Result<std::uint64_t> read_rows_state(const std::filesystem::path& folder);

}  // namespace troupe::actors::supervised
