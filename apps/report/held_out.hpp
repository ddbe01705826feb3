// Held-out problems as a run answered them at its first and at its last evaluation, from eval/.
// Only reinforcement learning has such files.
#pragma once

#include "apps/report/budget.hpp"
#include "apps/report/notes.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>

namespace troupe::report {

// {before, after (steps; absent: none), problems, shown, rows}: of each problem and mode (greedy or
// sampled) the scores and the first answers before and after. Problems are spread evenly when there
// are more than are shown.
nlohmann::ordered_json held_out_json(const std::filesystem::path& run,
                                     Budget& budget,
                                     Notes& notes);

}  // namespace troupe::report
