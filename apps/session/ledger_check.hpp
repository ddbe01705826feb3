// Reads a run's ledger and rollouts again and says whether anything was lost or doubled, and which
// reward set scored what. Read only; may be used while the run goes on. For benches, tests and
// people. Bounded by the ledger's records and one rollout file at a time.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <map>

namespace troupe::app {

struct LedgerCheck {
  std::uint64_t updates = 0, groups = 0, samples = 0;  // trained on
  std::uint64_t lost_groups = 0;                       // slots of an update without a record
  std::uint64_t doubled_groups = 0;                    // slots with more than one
  std::uint64_t lost_samples = 0;                      // in the ledger, not in the rollouts
  std::uint64_t doubled_samples = 0;  // in the rollouts more often than in the ledger
  // Positions of the prompt stream that no attempt took. Of a run that has ended: lost. While one
  // goes on asynchronously, those of the tickets that are out count here too.
  std::uint64_t lost_prompts = 0;
  std::uint64_t doubled_prompts = 0;  // positions that more than one attempt took
  std::uint64_t wrong_scores = 0;     // rollout lines whose set, rewards or sum the ledger denies
  std::uint64_t unclear_sets = 0;     // set numbers that stand for different rewards or weights
  std::map<std::uint64_t, std::uint64_t> samples_by_set;

  std::uint64_t lost() const { return lost_groups + lost_samples + lost_prompts; }
  std::uint64_t doubled() const { return doubled_groups + doubled_samples + doubled_prompts; }
  bool clean() const { return lost() + doubled() + wrong_scores + unclear_sets == 0; }
};

// `folder`: the run's, as --run.path. Errors: kData, naming file and line, for a damaged ledger or
// a rollout line that is no JSON object.
core::Result<LedgerCheck> check_ledger(const std::filesystem::path& folder);

}  // namespace troupe::app
