#include "runtime/learn/optim/schedule.hpp"

#include "runtime/learn/settings.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace troupe::learn {
namespace {

double half_cosine(double progress) {
  return 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
}

double cosine(const ScheduleStep& at) {
  return half_cosine(at.done / at.total);
}

double linear(const ScheduleStep& at) {
  return 1.0 - at.done / at.total;
}

double warm_stable_decay(const ScheduleStep& at) {
  const double left = at.total - at.done;
  return left >= at.decay ? 1.0 : half_cosine(1.0 - left / at.decay);
}

double restarts(const ScheduleStep& at) {
  return half_cosine(std::fmod(at.cycles * (at.done / at.total), 1.0));
}

constexpr std::array kSchedules = {
    Schedule{.name = "cosine",
             .alias = "cosine_with_min_lr",
             .help = "half a cosine from the peak to the least rate",
             .share = cosine},
    Schedule{.name = "linear", .help = "a straight line to the least rate", .share = linear},
    Schedule{.name = "constant",
             .alias = "constant_with_warmup",
             .help = "stays at the peak",
             .decays = false},
    Schedule{.name = "wsd",
             .alias = "warmup_stable_decay",
             .help = "stays at the peak, then half a cosine over the last steps",
             .share = warm_stable_decay},
    Schedule{.name = "restarts",
             .alias = "cosine_with_restarts",
             .help = "several half cosines; each begins at the peak",
             .share = restarts},
};

// ceil(share * steps), and at most all of them.
std::int64_t steps_of(double share, std::int64_t steps) {
  const auto some = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(steps)));
  return std::clamp<std::int64_t>(some, 0, steps);
}

}  // namespace

std::span<const Schedule> Schedule::all() {
  return kSchedules;
}

double learning_rate(const OptimSettings& optim, std::int64_t total_steps, std::int64_t step) {
  if (total_steps <= 0) return optim.adam.lr;
  const std::int64_t warmup_steps = steps_of(optim.lr_warmup_ratio, total_steps);
  const std::int64_t s = step + 1;
  if (s <= warmup_steps)
    return optim.adam.lr * static_cast<double>(s) / static_cast<double>(warmup_steps);
  if (!optim.lr_scheduler->decays) return optim.adam.lr;
  if (s >= total_steps) return optim.adam.lr * optim.min_lr_ratio;
  const std::int64_t after = total_steps - warmup_steps;
  const std::int64_t decay = std::min(steps_of(optim.lr_decay_ratio, total_steps), after);
  const double share = optim.lr_scheduler->share({.done = static_cast<double>(s - warmup_steps),
                                                  .total = static_cast<double>(after),
                                                  .decay = static_cast<double>(decay),
                                                  .cycles = static_cast<double>(optim.lr_cycles)});
  return optim.adam.lr * (optim.min_lr_ratio + (1.0 - optim.min_lr_ratio) * share);
}

}  // namespace troupe::learn
