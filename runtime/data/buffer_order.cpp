#include "runtime/data/buffer_order.hpp"

#include "runtime/core/check.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::data {
namespace {
constexpr std::uint64_t kBufferDomain = 0x627566666572;  // a random stream of this file's own
}

BufferOrder::BufferOrder(std::uint64_t rows, std::uint64_t buffer, std::uint64_t seed)
    : rows_(rows), size_(std::min(rows, buffer)), seed_(seed) {
  TROUPE_CHECK(rows >= 1 && buffer >= 1, "an order needs rows and room");
}

std::uint64_t BufferOrder::row_at(std::uint64_t index) {
  const std::uint64_t epoch = index / rows_, place = index % rows_;
  if (drawn_ == 0 || epoch != epoch_ || place + 1 < drawn_) begin(epoch);
  while (drawn_ <= place)
    draw();
  return latest_;
}

std::uint64_t BufferOrder::first_left() const {
  return buffer_.empty() ? entered_ : *std::ranges::min_element(buffer_);
}

void BufferOrder::begin(std::uint64_t epoch) {
  rng_ = core::Rng(core::derive_seed(seed_, kBufferDomain, epoch));
  buffer_.resize(size_);
  std::iota(buffer_.begin(), buffer_.end(), std::uint64_t{0});
  given_.assign(rows_, false);
  entered_ = size_;
  epoch_ = epoch;
  drawn_ = 0;
}

void BufferOrder::draw() {
  std::uint64_t& taken = buffer_[rng_.next_below(buffer_.size())];
  latest_ = taken;
  given_[latest_] = true;
  ++drawn_;
  if (entered_ < rows_) {
    taken = entered_++;
  } else {
    taken = buffer_.back();
    buffer_.pop_back();
  }
}

}  // namespace troupe::data
