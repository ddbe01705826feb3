#include "runtime/data/prompt_order.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/rng.hpp"

#include <numeric>
#include <utility>

namespace troupe::data {
namespace {
constexpr std::uint64_t kOrderDomain = 0x6F72646572;  // a random stream of this file's own
}

PromptOrder::PromptOrder(std::uint64_t rows, std::uint64_t seed, std::vector<std::uint64_t> runs)
    : rows_(rows), seed_(seed), runs_(std::move(runs)) {
  TROUPE_CHECK(rows >= 1, "an order needs rows");
  TROUPE_CHECK(runs_.empty() || (runs_.front() == 0 && runs_.back() < rows),
               "runs begin at the first row and have rows");
}

std::uint64_t PromptOrder::row_at(std::uint64_t index) {
  const std::uint64_t epoch = index / rows_;
  if (permutation_.empty() || epoch != epoch_) shuffle(epoch);
  return permutation_[index % rows_];
}

void PromptOrder::shuffle(std::uint64_t epoch) {
  std::vector<std::uint64_t> order(runs_.empty() ? rows_ : runs_.size());
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  core::Rng rng(core::derive_seed(seed_, kOrderDomain, epoch));
  core::shuffle(order, rng);
  if (runs_.empty()) {
    permutation_ = std::move(order);
  } else {
    permutation_.clear();
    for (const std::uint64_t run : order) {
      const std::uint64_t end = run + 1 < runs_.size() ? runs_[run + 1] : rows_;
      for (std::uint64_t row = runs_[run]; row < end; ++row)
        permutation_.push_back(row);
    }
  }
  epoch_ = epoch;
}

}  // namespace troupe::data
