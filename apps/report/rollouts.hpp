// The rollouts that a report shows: whole groups, spread evenly over a run, within a budget, with
// their tokens where the experience log has them, and their advantages where they can be computed.
// Reads one step's file at a time.
#pragma once

#include "apps/report/advantages.hpp"
#include "apps/report/budget.hpp"
#include "apps/report/notes.hpp"
#include "apps/report/token_log.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::report {

// Where a run's tokenizer may be, best first.
using ModelFolders = std::vector<std::string>;

// {groups, files, bytes, steps, samples, advantages, tokens}: the last two say why there are none.
nlohmann::ordered_json rollouts_json(const std::filesystem::path& run,
                                     std::uint64_t samples_max,
                                     const ModelFolders& models,
                                     Budget& budget,
                                     Notes& notes);

// One step's rows by group: a group has the same slot and attempt.
struct StepGroup {
  std::uint64_t slot = 0, attempt = 0;
  std::vector<nlohmann::ordered_json> rows;
};
struct StepRollouts {
  std::vector<StepGroup> groups;  // by slot
  std::uint64_t samples = 0;
  bool whole = false;  // no row is missing or damaged
};
StepRollouts read_rollouts(const std::filesystem::path& file, Notes& notes);

}  // namespace troupe::report
