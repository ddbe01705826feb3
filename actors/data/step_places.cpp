#include "actors/data/step_places.hpp"

#include <algorithm>
#include <map>

namespace troupe::actors::data {
namespace {

std::vector<experience::StepReward> list_of(const std::map<std::uint32_t, double>& by_token) {
  std::vector<experience::StepReward> list;
  for (const auto& [token, reward] : by_token)
    list.push_back({token, reward});
  return list;
}

}  // namespace

std::vector<experience::StepReward> at_tokens(std::span<const StepScore> steps,
                                              std::span<const std::uint32_t> ends) {
  std::map<std::uint32_t, double> by_token;
  for (const StepScore& step : steps) {
    // A step without text ends where the response does.
    const auto found =
        step.end == 0 ? ends.end() : std::lower_bound(ends.begin(), ends.end(), step.end);
    const auto token = std::min(found - ends.begin(), std::ssize(ends) - 1);
    by_token[static_cast<std::uint32_t>(token)] += step.score;
  }
  return list_of(by_token);
}

std::vector<experience::StepReward> weighed_steps(
    std::span<const std::vector<experience::StepReward>> lists, std::span<const double> weights) {
  std::map<std::uint32_t, double> by_token;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    if (weights[i] == 0) continue;
    for (const experience::StepReward& step : lists[i])
      by_token[step.token] += weights[i] * step.reward;
  }
  return list_of(by_token);
}

}  // namespace troupe::actors::data
