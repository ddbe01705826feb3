#include "runtime/observe/phase_timer.hpp"

#include <algorithm>

namespace troupe::observe {

void PhaseTimer::begin(std::string_view phase) {
  end();
  current_ = phase;
  since_ = clock_.now();
}

void PhaseTimer::end() {
  if (current_.empty()) return;
  const double seconds = std::chrono::duration<double>(clock_.now() - since_).count();
  const auto known = std::find_if(totals_.begin(), totals_.end(),
                                  [&](const auto& entry) { return entry.first == current_; });
  if (known == totals_.end()) {
    totals_.emplace_back(current_, seconds);
  } else {
    known->second += seconds;
  }
  current_.clear();
}

}  // namespace troupe::observe
