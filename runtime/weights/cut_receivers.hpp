// The receivers whose snapshot a publisher took back before they were done, by their random
// numbers. When such a receiver asks again, its next snapshot is kept until it is done. Owned by
// the server of weights, used on its thread. Bound: kWeightCut_max; then the one that was cut
// longest ago is forgotten.
#pragma once

#include "runtime/weights/limits.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>

namespace troupe::weights {

class CutReceivers {
 public:
  // A receiver without a number, 0, is never remembered.
  void add(std::uint32_t receiver) {
    if (receiver == 0 || contains(receiver)) return;
    if (cut_.size() >= limits::kWeightCut_max) cut_.pop_front();
    cut_.push_back(receiver);
  }
  void forget(std::uint32_t receiver) { std::erase(cut_, receiver); }
  bool contains(std::uint32_t receiver) const {
    return std::find(cut_.begin(), cut_.end(), receiver) != cut_.end();
  }

 private:
  std::deque<std::uint32_t> cut_;
};

}  // namespace troupe::weights
