#include "apps/troupe/batch/batch_sampler.hpp"

#include "apps/cli/stop_signal.hpp"
#include "runtime/core/rng.hpp"

#include <algorithm>
#include <utility>

namespace troupe::app {

Result<void> BatchSampler::run(std::size_t first, std::size_t end, const Hooks& hooks) {
  std::size_t next = next_done_ = first;
  for (;;) {
    if (cli::stop_requested()) return fail(ErrorCode::kInterrupted, "interrupted");
    while (next < end && next - next_done_ < kOpenGroups_max)
      TROUPE_TRY(submit(next++, hooks));
    if (driver_.idle()) return {};
    TROUPE_TRY_ASSIGN(samples, driver_.step());
    if (hooks.stepped) TROUPE_TRY(hooks.stepped());
    for (engine::Sample& sample : samples)
      open_[sample.group.value].push_back(std::move(sample));
    TROUPE_TRY(hand_out(hooks));
  }
}

Result<void> BatchSampler::submit(std::size_t index, const Hooks& hooks) {
  TROUPE_TRY_ASSIGN(tokens, hooks.prompt(index));
  engine::GroupRequest request;
  request.id.value = index;
  request.prompt = std::move(tokens);
  request.samples = samples_;
  request.seed = core::derive_seed(seed_, index);
  request.sampling = sampling_;
  if (auto taken = driver_.submit(std::move(request)); !taken)
    return fail(taken.error().within("prompt " + std::to_string(index + 1)));
  return {};
}

Result<void> BatchSampler::hand_out(const Hooks& hooks) {
  for (;;) {
    const auto group = open_.find(next_done_);
    if (group == open_.end() || std::ssize(group->second) < samples_) return {};
    std::vector<engine::Sample> samples = std::move(group->second);
    open_.erase(group);
    std::sort(samples.begin(), samples.end(),
              [](const auto& a, const auto& b) { return a.index < b.index; });
    TROUPE_TRY(hooks.done(next_done_, std::move(samples)));
    ++next_done_;
  }
}

}  // namespace troupe::app
