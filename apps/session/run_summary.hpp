// The table at the end of a run: what it learned on held-out problems, and where the time went.
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

// For a run that has nothing left to do; `unit` is "updates" or "steps". Error kConfig: it has done
// more than it was asked for.
core::Result<void> say_finished(const store::Checkpoint& newest,
                                std::uint64_t asked,
                                const std::string& unit);

}  // namespace troupe::app
