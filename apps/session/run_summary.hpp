// Prints the tables at the end of a run: held-out results before and after, and where the time
// went. Reads results from the run folder, so that a resumed run compares with its beginning, too.
#pragma once

#include "runtime/config/method.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/store/checkpoint_store.hpp"
#include "runtime/store/run_folder.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe::session {

// Prints the first evaluation against the last (if there are both), the wall time by phase, what
// the roles did, samples without a score, why nothing was learned if so, peak memory, the folder of
// the model, and a command that uses it. `load_s` and `phases`: seconds in this process. `chats`:
// rows went through the chat template.
void print_summary(const config::TrainConfig& config,
                   const store::RunFolder& folder,
                   std::uint64_t updates,
                   double load_s,
                   const std::vector<std::pair<std::string, double>>& phases,
                   bool chats);

// A supervised run's held-out figures before and after. Prints nothing unless there were
// evaluations at step 0 and at `steps`.
void print_held_out(const store::RunFolder& folder, std::uint64_t steps);

// Prints that a resumed run has nothing left to do, and how a longer one comes about. `asked`: how
// many it was to do; `unit`: "updates" or "steps". Error kConfig: the run has done more than that.
core::Result<void> say_finished(const config::TrainConfig& config,
                                const store::Checkpoint& newest,
                                std::uint64_t asked,
                                const std::string& unit);

}  // namespace troupe::session
