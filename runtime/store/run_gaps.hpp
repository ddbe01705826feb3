// What the files of a run folder lack of the updates before the checkpoint that the run goes on
// from. Reads the files whole; called once, at the start of a run.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/store/run_folder.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::store {

// A warning for each of metrics.jsonl, ledger.log and rollouts/ that lacks updates up to `step`.
// `first`: the updates before it are another run's; unknown: those before the first line do not
// count. `groups`: the run has a ledger and rollouts. Errors: the disk's.
core::Result<std::vector<std::string>> gaps_of(const RunFolder& folder,
                                               std::optional<std::uint64_t> first,
                                               std::uint64_t step,
                                               bool groups);

}  // namespace troupe::store
