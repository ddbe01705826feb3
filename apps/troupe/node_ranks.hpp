// Several nodes of one host, each in a process of its own: `troupe node --ranks N`. So a gang has
// as many ranks on a host as there are nodes, and the loss of one process is the loss of one rank.
// On the main thread, which it blocks. Bound: kRanks_max processes.
#pragma once

#include "apps/cli/words.hpp"

#include <cstdint>
#include <string>

namespace troupe::app {

// Runs `troupe node` with these words, but for --ranks and --name, as NAME-0 to NAME-(ranks - 1). A
// process that was killed, or ended for a cause that may pass, is started again after a pause that
// doubles. Ends when all nodes were dismissed, or with the first cause that stays (kConfig;
// kUnsupported), which that process has printed. Errors: also kInterrupted; kResources.
Result<void> run_node_ranks(const std::string& name, std::int64_t ranks, cli::Words words);

}  // namespace troupe::app
