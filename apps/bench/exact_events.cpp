#include "apps/bench/exact_events.hpp"

#include "runtime/core/rng.hpp"

#include <algorithm>
#include <iterator>

namespace troupe::bench {
namespace {

constexpr std::uint64_t kOtherIds = 1ull << 40;  // marks ids of groups whose samples are dropped
constexpr std::int32_t kOtherTokens = 3;
constexpr std::size_t kOtherGroups = 2;

}  // namespace

core::Result<void> ExactEvents::next(Live& live) {
  switch (turn_++ % 9) {
    case 0:
      return cut_one(live);
    case 1:
      ++counts_["pause_keep"];
      return pause(engine::PauseMode::kKeep);
    case 2:
      ++counts_["sleep_kv"];
      return sleep({false, true});
    case 3:
      return swap_there_and_back();
    case 4:
      ++counts_["pause_recompute"];
      return pause(engine::PauseMode::kRecompute);
    case 5:
      return other_weights(live);
    case 6:
      ++counts_["sleep_weights_and_kv"];
      return sleep({true, true});
    case 7:
      ++counts_["sleep_weights"];
      return sleep({true, false});
    default:
      return pause_by_abort(live);
  }
}

core::Result<void> ExactEvents::hand_in_again(LiveGroup& group) {
  group.left = group.request.samples;
  ++group.cuts;
  return driver_.submit(group.request);
}

// Whether every group may be aborted once more.
bool ExactEvents::may_cut(const Live& live) {
  return std::all_of(live.begin(), live.end(),
                     [](const auto& one) { return one.second.cuts < kCuts_max; });
}

core::Result<void> ExactEvents::cut_one(Live& live) {
  if (live.empty()) return {};
  const std::uint64_t pick = core::derive_seed(seed_, turn_) % live.size();
  LiveGroup& group = std::next(live.begin(), static_cast<std::ptrdiff_t>(pick))->second;
  if (group.cuts >= kCuts_max) return {};
  driver_.abort(group.request.id);
  ++counts_["abort_and_resubmit"];
  return hand_in_again(group);
}

core::Result<void> ExactEvents::expect_still() {
  TROUPE_TRY_ASSIGN(finished, driver_.step());
  if (finished.empty()) return {};
  return core::fail(core::ErrorCode::kInternal, "exact: a paused engine went on");
}

core::Result<void> ExactEvents::pause(engine::PauseMode mode) {
  driver_.pause(mode);
  TROUPE_TRY(expect_still());
  return driver_.resume();
}

core::Result<void> ExactEvents::pause_by_abort(Live& live) {
  if (!may_cut(live)) return {};
  driver_.pause(engine::PauseMode::kAbort);
  ++counts_["pause_abort"];
  for (auto& [id, group] : live)
    TROUPE_TRY(hand_in_again(group));
  TROUPE_TRY(expect_still());
  return driver_.resume();
}

core::Result<void> ExactEvents::sleep(engine::SleepParts parts) {
  TROUPE_TRY(driver_.sleep(parts));
  if (parts.weights) {
    TROUPE_TRY(driver_.wake({true, false}));
    TROUPE_TRY(driver_.set_weights(two_.weights, engine::KvAction::kRecompute));
  }
  if (parts.kv) TROUPE_TRY(driver_.wake({false, true}));
  return {};
}

// There is no step between the swaps; the KV cache must be computed again nevertheless.
core::Result<void> ExactEvents::swap_there_and_back() {
  TROUPE_TRY(driver_.set_weights(two_.other, engine::KvAction::kRecompute));
  ++counts_["weight_swap_recompute"];
  return driver_.set_weights(two_.weights, engine::KvAction::kRecompute);
}

// Aborts all groups and lets the other weights compute some of the same prompts, so that a prefix
// cache which is not emptied holds keys of the other weights. Then goes on with the first weights.
core::Result<void> ExactEvents::other_weights(Live& live) {
  if (!may_cut(live)) return {};
  driver_.pause(engine::PauseMode::kAbort);
  TROUPE_TRY(driver_.set_weights(two_.other, engine::KvAction::kRecompute));
  TROUPE_TRY(driver_.resume());
  std::size_t groups = 0;
  for (const auto& [id, group] : live) {
    if (++groups > kOtherGroups) break;
    engine::GroupRequest request = group.request;
    request.id.value |= kOtherIds;
    request.sampling.max_new_tokens = std::min(request.sampling.max_new_tokens, kOtherTokens);
    TROUPE_TRY(driver_.submit(std::move(request)));
  }
  TROUPE_TRY(driver_.run());
  TROUPE_TRY(driver_.set_weights(two_.weights, engine::KvAction::kKeep));
  ++counts_["other_weights_on_the_same_prompts"];
  for (auto& [id, group] : live)
    TROUPE_TRY(hand_in_again(group));
  return {};
}

}  // namespace troupe::bench
