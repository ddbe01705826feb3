// The table of held-out figures at the end of a supervised run: before, after, change. Reads
// metrics.jsonl, so that a run that was interrupted shows its beginning too. Pure reading.
#pragma once

#include <cstdint>
#include <filesystem>

namespace troupe::app {

// Prints nothing when there were no evaluations at step 0 and at `steps`.
void print_held_out(const std::filesystem::path& metrics_file, std::uint64_t steps);

}  // namespace troupe::app
