#include "runtime/data/prompt_order.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/rng.hpp"

#include <numeric>
#include <utility>

namespace troupe::data {
namespace {
constexpr std::uint64_t kOrderDomain = 0x6F72646572;  // keeps these draws apart from sampling's
}

PromptOrder::PromptOrder(std::uint64_t rows, std::uint64_t seed) : rows_(rows), seed_(seed) {
  TROUPE_CHECK(rows >= 1, "an order needs rows");
}

std::uint64_t PromptOrder::row_at(std::uint64_t index) {
  const PromptCursor at = cursor(index);
  if (permutation_.empty() || at.epoch != epoch_) shuffle(at.epoch);
  return permutation_[at.position];
}

void PromptOrder::shuffle(std::uint64_t epoch) {
  permutation_.resize(rows_);
  std::iota(permutation_.begin(), permutation_.end(), std::uint64_t{0});
  core::Rng rng(core::derive_seed(seed_, kOrderDomain, epoch));
  for (std::uint64_t i = rows_; i > 1; --i) {
    std::swap(permutation_[i - 1], permutation_[rng.next_below(i)]);
  }
  epoch_ = epoch;
}

}  // namespace troupe::data
