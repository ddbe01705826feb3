// Prints the tables at the end of a run: held-out results before and after, and where the time
// went. All is read from the run folder, so that a resumed run shows its beginning too.
#pragma once

#include "runtime/store/checkpoint_store.hpp"
#include "runtime/store/run_folder.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe::app {

// Compares the first and the last evaluation; without them prints only the times.
void print_summary(const store::RunFolder& folder,
                   std::uint64_t updates,
                   double load_s,
                   const std::vector<std::pair<std::string, double>>& phases);

// A supervised run's held-out figures before and after. Prints nothing unless there were
// evaluations at step 0 and at `steps`.
void print_held_out(const store::RunFolder& folder, std::uint64_t steps);

// Says that a resumed run has nothing left to do; `unit` is "updates" or "steps". Error kConfig: it
// has done more than it was asked for.
core::Result<void> say_finished(const store::Checkpoint& newest,
                                std::uint64_t asked,
                                const std::string& unit);

}  // namespace troupe::app
