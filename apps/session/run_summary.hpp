// The tables at the end of a run: what it learned on held-out problems or rows, and where the time
// went. All is read from the run folder, so that a run that was interrupted shows its beginning
// too.
#pragma once

#include "runtime/store/checkpoint_store.hpp"
#include "runtime/store/run_folder.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe::app {

// Reads the first and the last evaluation from the folder; without them only the times are printed.
void print_summary(const store::RunFolder& folder,
                   std::uint64_t updates,
                   double load_s,
                   const std::vector<std::pair<std::string, double>>& phases);

// The held-out figures of a supervised run before and after. Prints nothing when there were no
// evaluations at step 0 and at `steps`.
void print_held_out(const store::RunFolder& folder, std::uint64_t steps);

// For a run that has nothing left to do; `unit` is "updates" or "steps". Error kConfig: it has done
// more than it was asked for.
core::Result<void> say_finished(const store::Checkpoint& newest,
                                std::uint64_t asked,
                                const std::string& unit);

}  // namespace troupe::app
