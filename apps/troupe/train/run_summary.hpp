// The table at the end of a run: what it learned on held-out problems, and where the time went.
#pragma once

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

}  // namespace troupe::app
