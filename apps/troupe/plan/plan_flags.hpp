// The words of `troupe plan`: its own flags, and those of the configuration. The flags hold what
// configurations have no keys for; when they have, a flag here goes and plan_facts.cpp reads the
// key. Value types.
#pragma once

#include "apps/cli/words.hpp"
#include "runtime/config/builder.hpp"
#include "runtime/plan/plan.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::app {

struct PlanFlags {
  std::string cluster;  // "8x8xH100-80"; empty: the processors of one host
  bool offload = false;
  std::int64_t actor_ranks = 0, critic_ranks = 0;  // 0: those of the configuration
  std::int64_t zero_stage = -1;                    // -1: that of the configuration
  std::int64_t engines = -1;                       // -1: rollout.generators
  double host_gb = 0;                              // memory of a node's host; 0: not given
  bool json = false;
  std::vector<std::string> config;  // the other words: files and settings
};

// Prints the help page itself when that is asked for; `help_shown` says so. Error kConfig with all
// mistakes in the own flags.
Result<PlanFlags> read_plan_flags(cli::Words words, bool& help_shown);

// What a plan is computed from: the configuration of a run, the shapes of its models, and the
// flags. Reads config.json files and nothing else. `origins`: which keys were set. Errors:
// kConfig (a flag or key that makes no sense here, a device named twice), those of model::read_spec
// and model::trained_layout.
Result<plan::RunFacts> plan_facts(const config::TrainConfig& config,
                                  const config::Origins& origins,
                                  const PlanFlags& flags);

}  // namespace troupe::app
