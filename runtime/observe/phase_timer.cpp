#include "runtime/observe/phase_timer.hpp"

#include <algorithm>

namespace troupe::observe {

double PhaseTimer::running_s() const {
  return std::chrono::duration<double>(clock_.now() - since_).count();
}

void PhaseTimer::begin(std::string_view phase) {
  end();
  current_ = phase;
  since_ = clock_.now();
  const auto known = std::any_of(totals_.begin(), totals_.end(),
                                 [&](const auto& entry) { return entry.first == phase; });
  if (!known) totals_.emplace_back(current_, 0.0);
}

void PhaseTimer::end() {
  if (current_.empty()) return;
  for (auto& [name, seconds] : totals_) {
    if (name == current_) seconds += running_s();
  }
  current_.clear();
}

std::vector<std::pair<std::string, double>> PhaseTimer::totals() const {
  auto out = totals_;
  for (auto& [name, seconds] : out) {
    if (name == current_) seconds += running_s();
  }
  return out;
}

}  // namespace troupe::observe
