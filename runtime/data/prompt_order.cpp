#include "runtime/data/prompt_order.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/rng.hpp"

#include <numeric>

namespace troupe::data {
namespace {
constexpr std::uint64_t kOrderDomain = 0x6F72646572;  // a random stream of this file's own
}

PromptOrder::PromptOrder(std::uint64_t rows, std::uint64_t seed) : rows_(rows), seed_(seed) {
  TROUPE_CHECK(rows >= 1, "an order needs rows");
}

std::uint64_t PromptOrder::row_at(std::uint64_t index) {
  const std::uint64_t epoch = index / rows_;
  if (permutation_.empty() || epoch != epoch_) shuffle(epoch);
  return permutation_[index % rows_];
}

void PromptOrder::shuffle(std::uint64_t epoch) {
  permutation_.resize(rows_);
  std::iota(permutation_.begin(), permutation_.end(), std::uint64_t{0});
  core::Rng rng(core::derive_seed(seed_, kOrderDomain, epoch));
  core::shuffle(permutation_, rng);
  epoch_ = epoch;
}

}  // namespace troupe::data
