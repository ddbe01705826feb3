// Compares a run's ledger with its rollouts: counts what was lost or duplicated, and how many
// samples each reward set scored. Read only; may be used during the run. For benchmarks and tests.
// Memory: the ledger's records, and sample numbers of one rollout file at a time.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <map>

namespace troupe::bench {

struct LedgerCheck {
  std::uint64_t updates = 0, groups = 0, samples = 0;  // trained on
  std::uint64_t lost_groups = 0;                       // slots of an update without a record
  std::uint64_t doubled_groups = 0;                    // slots with more than one
  std::uint64_t lost_samples = 0;                      // in the ledger, not in the rollouts
  std::uint64_t doubled_samples = 0;  // in the rollouts more often than in the ledger
  // Positions of the prompt stream that no recorded attempt took: lost, once the run has ended.
  // While an asynchronous run goes on, the positions of its open tickets count here too.
  std::uint64_t lost_prompts = 0;
  std::uint64_t doubled_prompts = 0;  // positions that more than one attempt took
  std::uint64_t wrong_scores = 0;     // rollout lines whose scores contradict the ledger
  std::uint64_t unclear_sets = 0;     // set numbers used for different rewards or weights
  std::map<std::uint64_t, std::uint64_t> samples_by_set;

  std::uint64_t lost() const { return lost_groups + lost_samples + lost_prompts; }
  std::uint64_t doubled() const { return doubled_groups + doubled_samples + doubled_prompts; }
  bool clean() const { return lost() + doubled() + wrong_scores + unclear_sets == 0; }
};

// `folder`: the run folder (--run.path). Errors: kData, naming file and line, for a damaged ledger
// or a rollout line that is no JSON object.
core::Result<LedgerCheck> check_ledger(const std::filesystem::path& folder);

}  // namespace troupe::bench
