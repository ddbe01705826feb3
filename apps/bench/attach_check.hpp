// After the cycles of `troupe bench attach`: does each record of the ledger name the reward set
// that its ticket was to have, and does each score of the rollouts come from the reward that it
// names? Read only; pure but for the files it reads. Bounded by the ledger.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace troupe::app {

struct SetCheck {
  std::uint64_t attached_scores = 0;  // in the rollouts, from attached rewards
  std::uint64_t wrong_set = 0;        // samples of another set than their ticket's
  std::uint64_t wrong_score = 0;      // scores that their reward did not give
};

// First update (from 0) by set, as the run printed it: "reward set 3 from update 12 on: ...".
std::map<std::uint64_t, std::uint64_t> printed_sets(const std::string& output);

// `run`: its folder. Error: kData.
core::Result<SetCheck> check_sets(const std::filesystem::path& run,
                                  const std::map<std::uint64_t, std::uint64_t>& first_updates);

}  // namespace troupe::app
