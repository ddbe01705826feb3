#include "apps/troupe/plan/plan_flags.hpp"

#include "apps/cli/flags.hpp"
#include "runtime/core/bool_word.hpp"

#include <algorithm>

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
      {"--host-gb", &flags.host_gb, "memory of a node's host in 1e9 bytes; 0: unknown", false, 0,
       kHostGb_max},
      {"--json", &flags.json, "print one JSON object"},
  };
}

bool is_switch(const cli::Flag& flag) {
  return std::holds_alternative<bool*>(flag.target);
}

// The words of the own flags go to `own`, all others to `rest`.
void part(cli::Words words,
          const std::vector<cli::Flag>& flags,
          std::vector<std::string>& own,
          std::vector<std::string>& rest) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto equals = words[i].find('=');
    const std::string name = words[i].substr(0, equals);
    const auto flag = std::find_if(flags.begin(), flags.end(),
                                   [&](const cli::Flag& one) { return one.name == name; });
    if (flag == flags.end()) {
      rest.push_back(words[i]);
      continue;
    }
    own.push_back(words[i]);
    const bool more = i + 1 < words.size();
    const bool takes = is_switch(*flag) ? more && core::bool_word(words[i + 1]).has_value() : more;
    if (equals == words[i].npos && takes) own.push_back(words[++i]);
  }
}

}  // namespace

Result<PlanFlags> read_plan_flags(cli::Words words, bool& help_shown) {
  PlanFlags flags;
  const std::vector<cli::Flag> known = flags_for(flags);
  std::vector<std::string> own;
  if (cli::wants_help(words)) {
    own = {"--help"};
  } else {
    part(words, known, own, flags.config);
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
