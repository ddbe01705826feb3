#include "apps/session/reward_words.hpp"

#include "runtime/core/texts.hpp"

#include <cmath>

namespace troupe::session {
namespace {

constexpr double kTimed_min = 4;  // calls before their mean means something

}  // namespace

double seconds_an_update(const CallCosts& costs, std::uint64_t groups) {
  if (costs.workers < 1 || costs.together != 0 || costs.timed_calls < kTimed_min) return 0;
  return std::ceil(static_cast<double>(groups) / costs.workers) * costs.call_s;
}

std::string call_arithmetic(const CallCosts& costs, std::uint64_t groups) {
  const double seconds = seconds_an_update(costs, groups);
  if (seconds <= 0) return "";
  return core::printed("%lu groups x %.3g s a call / %.0f worker%s = %.3g s an update", groups,
                       costs.call_s, costs.workers, costs.workers == 1 ? "" : "s", seconds);
}

std::string servers_words(double servers, double away) {
  if (servers < 2 || away < 1) return "";
  return core::printed("%.0f of its %.0f servers %s away%s", away, servers,
                       away == 1 ? "is" : "are",
                       away < servers ? "; the others answer for them" : "");
}

std::string set_words(const actors::SetRewards& set) {
  std::string text = "reward set " + std::to_string(set.set) + " from update " +
                     std::to_string(set.from_update + 1) + " on:";
  for (const actors::RewardMember& member : set.members) {
    text += " " + member.name + core::printed(" x %g", member.weight);
  }
  if (!set.formula.empty()) text += "; formula " + set.formula;
  return text;
}

}  // namespace troupe::session
