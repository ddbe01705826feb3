// The nodes that were lost last, with the cause and what each had printed last, for `status`. A
// pure value. Owned by the company, used on its strand. Bound: kLostNodes_max.
#pragma once

#include "actors/limits.hpp"
#include "runtime/core/clock.hpp"

#include <deque>
#include <string>
#include <vector>

namespace troupe::actors {

struct LostNode {
  std::string name, host, cause;
  core::TimePoint when{};
  std::vector<std::string> last_lines;  // oldest first
};

class LostNodes {
 public:
  void add(LostNode node) {
    if (nodes_.size() >= limits::kLostNodes_max) nodes_.pop_front();
    nodes_.push_back(std::move(node));
  }
  const std::deque<LostNode>& all() const noexcept { return nodes_; }  // oldest first

 private:
  std::deque<LostNode> nodes_;
};

// "; its last lines: a | b", of at most three lines; "" without any.
std::string last_words(const std::vector<std::string>& lines);

}  // namespace troupe::actors
