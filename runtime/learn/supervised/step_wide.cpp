#include "runtime/learn/supervised/step_wide.hpp"

#include "runtime/core/check.hpp"
#include "runtime/learn/state/state_numbers.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::learn {
namespace {

constexpr const char* kRewardMoments = "reward_moments.json";

}  // namespace

std::vector<double> matched_ratios(const RowFacts& facts,
                                   std::span<const double> first,
                                   std::span<const double> second) {
  const std::size_t count = facts.size();
  TROUPE_CHECK(first.size() == count && second.size() == count, "one log-prob per answer");
  std::vector<double> sorted;
  for (std::size_t i = 0; i < count; ++i)
    sorted.push_back(facts.reference_first[i] - facts.reference_second[i]);
  std::stable_sort(sorted.begin(), sorted.end());
  std::vector<std::size_t> rows(count);
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    return first[a] - second[a] < first[b] - second[b];
  });
  std::vector<double> matched(count);
  for (std::size_t rank = 0; rank < count; ++rank)
    matched[rows[rank]] = sorted[rank];
  return matched;
}

core::Result<void> save_rewards(const std::filesystem::path& folder,
                                const RunningMoments& moments) {
  const nlohmann::json state = {{"format", kStateFormat},
                                {"rewards", moments.count},
                                {"reward_mean", moments.mean},
                                {"reward_squares", moments.squares}};
  return store::write_file(folder / kRewardMoments, state.dump(2) + "\n");
}

core::Result<RunningMoments> load_rewards(const std::filesystem::path& folder) {
  TROUPE_TRY_ASSIGN(state, read_numbers(folder / kRewardMoments, {"format", "rewards"},
                                        {"reward_mean", "reward_squares"}));
  return RunningMoments{state["rewards"].get<std::uint64_t>(), state["reward_mean"].get<double>(),
                        state["reward_squares"].get<double>()};
}

}  // namespace troupe::learn
