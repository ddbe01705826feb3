// How far a run has come: updates done, learned from, and those whose weights diverge. A pure
// value.
#pragma once

#include "runtime/observe/metric_row.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace troupe::session {

class Headway {
 public:
  explicit Headway(std::uint64_t done) : done_(done), learned_(done) {}

  // The metrics of the update that was done last.
  void on_update(const observe::MetricRow& row) {
    done_ = row.step;
    const bool skipped = row.find("policy/skipped_steps").value_or(0) > 0;
    if (!skipped || row.find("policy/grad_norm")) learned_ = done_;  // some were not skipped
  }
  // The weights after that many updates are the first that diverge.
  void on_diverged(std::uint64_t updates) { diverged_ = updates; }

  std::uint64_t done() const noexcept { return done_; }
  // The last update that was learned from and whose weights did not diverge; nothing: those that
  // the run began with do.
  std::optional<std::uint64_t> last_good() const {
    if (diverged_ == 0u) return std::nullopt;
    return diverged_ ? std::min(learned_, *diverged_ - 1) : learned_;
  }

 private:
  std::uint64_t done_, learned_;
  std::optional<std::uint64_t> diverged_;
};

}  // namespace troupe::session
