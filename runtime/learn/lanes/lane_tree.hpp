// In which order the gradients of a round's lanes are added (docs/algorithms.md, "Lanes"). Lanes 0
// to L - 1 are the leaves of a tree: neighbours are joined, level by level, and one that has no
// neighbour passes up. A lane without a gradient is absent and passes its sibling up. So the order
// is a function of L and of which lanes are present, and of nothing else. Pure values, no memory.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe::learn {

// Lanes [begin, end).
struct LaneSpan {
  std::int64_t begin = 0, end = 0;
  friend bool operator==(const LaneSpan&, const LaneSpan&) = default;
};

// Whether one node of the tree over `lanes` lanes has exactly the lanes of `span` below it.
bool is_subtree(LaneSpan span, std::int64_t lanes);

// Takes neighbouring subtrees from left to right and says when to join the sums of which. The
// caller keeps the sums of the subtrees that wait, in their order, absent ones left out. It may
// take lane by lane, or subtrees that others have completed: the joins that are left are the same.
class LaneFold {
 public:
  struct Subtree {
    LaneSpan lanes;
    bool present = false;  // false: no lane of it has a gradient
    friend bool operator==(const Subtree&, const Subtree&) = default;
  };

  // Begins at lane `first` of `lanes`.
  explicit LaneFold(std::int64_t lanes, std::int64_t first = 0) : lanes_(lanes), next_(first) {}

  // Takes the subtree that begins at next(). If it is present, the caller appends its sum. Returns
  // the number of joins to do now: each replaces the last two sums by their sum.
  int take(const Subtree& subtree);

  std::int64_t next() const { return next_; }
  // What was taken, as the largest complete subtrees, left to right. When a rank has taken all
  // lanes that it holds, these are what it can complete alone.
  const std::vector<Subtree>& waiting() const { return waiting_; }
  // Whether all lanes are in one subtree; the one sum that is left, if any, is the round's.
  bool complete() const {
    return waiting_.size() == 1 && waiting_.front().lanes == LaneSpan{0, lanes_};
  }

 private:
  std::int64_t lanes_, next_;
  std::vector<Subtree> waiting_;
};

}  // namespace troupe::learn
