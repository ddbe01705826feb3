#include "apps/session/returns.hpp"

#include "apps/session/limits.hpp"
#include "runtime/store/run_folder.hpp"

#include <algorithm>

namespace troupe::session {

core::Result<Returns::Place> Returns::next(std::optional<std::uint64_t> good,
                                           const std::vector<std::uint64_t>& kept,
                                           std::optional<std::uint64_t> start) {
  if (!good) return none("there is no checkpoint before them to go back to");
  if (tried_.empty() || *good > reached_) {
    tried_.clear();
    reached_ = *good;
  }
  if (tried_.size() >= limits::kDivergences_max) {
    return none("so many returns are the most: " + std::to_string(limits::kDivergences_max));
  }
  const std::uint64_t before = tried_.empty() ? *good + 1 : std::min(*good + 1, tried_.back().step);
  const auto behind = std::lower_bound(kept.begin(), kept.end(), before);
  if (behind != kept.begin()) {
    tried_.push_back({*std::prev(behind), false, tried_.size() + 1});
  } else if (start && tried_.empty()) {
    tried_.push_back({*start, true, 1});
  } else {
    return none(tried_.empty() ? "there is no checkpoint before it to go back to"
                               : "no earlier checkpoint is kept");
  }
  return tried_.back();
}

core::Failure Returns::none(const std::string& why) const {
  std::string text;
  for (std::size_t i = 0; i < tried_.size(); ++i) {
    text += i == 0 ? "the run went back to " : i + 1 == tried_.size() ? " and " : ", ";
    text += tried_[i].is_start ? "what it began with" : store::step_name(tried_[i].step);
  }
  if (!tried_.empty()) {
    text += ", with other data each time, and did not get past " + unit_ + " " +
            std::to_string(reached_ + 1) + "; ";
  }
  return core::fail(core::ErrorCode::kNumeric, text + why,
                    "or keep more checkpoints with --ckpt.max_num");
}

}  // namespace troupe::session
