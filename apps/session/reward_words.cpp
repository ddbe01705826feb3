#include "apps/session/reward_words.hpp"

#include <cmath>
#include <cstdio>

namespace troupe::app {
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
  char text[160];
  std::snprintf(text, sizeof text, "%llu groups x %.3g s a call / %.0f worker%s = %.3g s an update",
                static_cast<unsigned long long>(groups), costs.call_s, costs.workers,
                costs.workers == 1 ? "" : "s", seconds);
  return text;
}

std::string servers_words(double servers, double away) {
  if (servers < 2 || away < 1) return "";
  char text[96];
  std::snprintf(text, sizeof text, "%.0f of its %.0f servers %s away%s", away, servers,
                away == 1 ? "is" : "are", away < servers ? "; the others answer for them" : "");
  return text;
}

}  // namespace troupe::app
