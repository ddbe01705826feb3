#include "apps/troupe/plan/plan_flags.hpp"

#include "apps/cli/flags.hpp"

#include <utility>

namespace troupe::app {
namespace {

constexpr double kRanksPlanned_max = 1024;  // as many as lanes
constexpr double kEnginesPlanned_max = 100'000;
constexpr double kHostGb_max = 1e6;

std::vector<cli::Flag> flags_for(PlanFlags& flags) {
  return {
      {"--cluster", &flags.cluster,
       "NODESxDEVICESxCARD-GB, such as 8x8xH100-80; without it processors of one host"},
      {"--actor-ranks", &flags.actor_ranks,
       "processes of the trained model, one device each; 0: actor.ranks", false, 0,
       kRanksPlanned_max},
      {"--critic-ranks", &flags.critic_ranks, "critic processes; 0: critic.ranks", false, 0,
       kRanksPlanned_max},
      {"--zero-stage", &flags.zero_stage,
       "what ranks share: 1 moments, 2 gradients too, 3 weights too; -1: train.zero_stage", false,
       -1, 3},
      {"--offload", &flags.offload,
       "master weights and moments lie in the host's memory; without it train.offload"},
      {"--engines", &flags.engines, "generation engines; -1: rollout.generators", false, -1,
       kEnginesPlanned_max},
      {"--host-gb", &flags.host_gb,
       "memory of a node's host in 1e9 bytes; 0: without --cluster this machine's", false, 0,
       kHostGb_max},
      {"--json", &flags.json, "print one JSON object"},
  };
}

}  // namespace

Result<PlanFlags> read_plan_flags(cli::Words words, bool& help_shown) {
  PlanFlags flags;
  const std::vector<cli::Flag> known = flags_for(flags);
  std::vector<std::string> own;
  if (cli::wants_help(words)) {
    own = {"--help"};
  } else {
    cli::PartedWords parted = cli::part_words(words, known);
    own = std::move(parted.own);
    flags.config = std::move(parted.rest);
  }
  TROUPE_TRY_ASSIGN(
      outcome,
      cli::parse_flags("troupe plan: where the roles of a configuration go, what they take of each "
                       "device, and whether that fits. Give CONFIG.yaml and settings as to troupe "
                       "train; only the config.json of a model is read",
                       known, own));
  help_shown = outcome == cli::FlagsOutcome::kHelpShown;
  return flags;
}

}  // namespace troupe::app
