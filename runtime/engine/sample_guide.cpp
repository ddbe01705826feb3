#include "runtime/engine/sample_guide.hpp"

#include <algorithm>

namespace troupe::engine {

SampleGuide::Next SampleGuide::look(const EndTokens& ends, bool early) {
  const auto mask = guide_->mask();
  if (!mask) {
    why_ = mask.error().message;
    return Next::kNone;
  }
  allowed_.assign(mask->words.begin(), mask->words.end());
  set(ends.model, false);
  if (mask->may_end) set(ends.all, true);
  if (early) {
    without_ends_ = allowed_;
    set(ends.all, false);
    if (!any()) std::swap(allowed_, without_ends_);
  }
  if (any()) return Next::kDraw;
  if (mask->may_end) return Next::kComplete;
  why_ = "no token of the vocabulary goes on with this text in the grammar";
  return Next::kNone;
}

SampleGuide::Next SampleGuide::take(std::int32_t token, const EndTokens& ends, bool early) {
  if (const auto taken = guide_->take(token); !taken) {
    why_ = taken.error().message;
    return Next::kNone;
  }
  return look(ends, early);
}

bool SampleGuide::any() const {
  return std::any_of(allowed_.begin(), allowed_.end(),
                     [](std::uint32_t word) { return word != 0; });
}

void SampleGuide::set(std::span<const std::int32_t> tokens, bool value) {
  for (const std::int32_t token : tokens) {
    std::uint32_t& word = allowed_[static_cast<std::size_t>(token) / 32];
    const std::uint32_t bit = 1u << (token % 32);
    word = value ? word | bit : word & ~bit;
  }
}

}  // namespace troupe::engine
