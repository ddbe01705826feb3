#include "runtime/learn/lanes/lane_tree.hpp"

#include "runtime/core/check.hpp"

#include <algorithm>
#include <bit>

namespace troupe::learn {
namespace {

// The number of lanes below a node of the level where `size` lanes fit: a power of two.
std::int64_t full_size(std::int64_t size) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(size)));
}

}  // namespace

bool is_subtree(LaneSpan span, std::int64_t lanes) {
  if (span.begin < 0 || span.begin >= span.end || span.end > lanes) return false;
  const std::int64_t full = full_size(span.end - span.begin);
  return span.begin % full == 0 && span.end == std::min(span.begin + full, lanes);
}

int LaneFold::take(const Subtree& subtree) {
  TROUPE_CHECK(subtree.lanes.begin == next_ && is_subtree(subtree.lanes, lanes_),
               "subtrees are taken from left to right");
  next_ = subtree.lanes.end;
  waiting_.push_back(subtree);
  int joins = 0;
  while (waiting_.size() >= 2) {
    const Subtree right = waiting_.back();
    Subtree& left = waiting_[waiting_.size() - 2];
    const LaneSpan both{left.lanes.begin, right.lanes.end};
    if (!is_subtree(both, lanes_)) break;
    joins += left.present && right.present ? 1 : 0;
    left = {both, left.present || right.present};
    waiting_.pop_back();
  }
  return joins;
}

}  // namespace troupe::learn
