// The nodes that were lost last, with the cause and what each had printed last, for `status`. A
// pure value. Owned by the company, used on its strand. Bound: kLostNodes_max.
#pragma once

#include "actors/company/limits.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/error.hpp"

#include <deque>
#include <string>
#include <vector>

namespace troupe::actors::company {

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

// "generator/0 is lost: why"; the head is not doubled when the cause already has it.
std::string lost_text(const std::string& name, const core::Error& cause);

// What ends a run whose role, or whose node's process, was lost too often. `last`: for what.
core::Error worn_out(core::ErrorCode last, core::ErrorCode otherwise, const std::string& text);

// "; its last lines: a | b", of at most three lines; "" without any.
std::string last_words(const std::vector<std::string>& lines);

}  // namespace troupe::actors::company
