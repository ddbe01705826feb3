#include "runtime/plan/batch.hpp"

#include <algorithm>
#include <string>

namespace troupe::plan {
namespace {

std::int64_t over(std::int64_t count, std::int64_t parts) {
  return (count + parts - 1) / parts;
}

// How learn::plan_update fills micro-batches with groups that are all alike.
class Cut {
 public:
  explicit Cut(const BatchFacts& facts) : f_(facts) {}

  std::int64_t micro_batches() const {
    if (f_.lanes == 1) return fits() ? whole_groups() : parts();
    const std::int64_t all = f_.groups * f_.samples;
    const std::int64_t units = fits() ? f_.groups : all;
    const std::int64_t wanted = rounded(fits() ? whole_groups() : samples());
    // Where whole groups would leave a lane empty, groups are split between samples.
    return units >= wanted ? wanted : std::min(rounded(samples()), all);
  }

 private:
  std::int64_t group() const { return f_.shared_rows + f_.samples * f_.sample_rows; }
  bool fits() const { return group() <= f_.rows_max; }
  std::int64_t rounded(std::int64_t count) const { return over(count, f_.lanes) * f_.lanes; }
  std::int64_t whole_groups() const { return over(f_.groups, f_.rows_max / group()); }

  // Groups larger than a micro-batch are cut into parts; a group's last part may stand with the
  // next one's first.
  std::int64_t parts() const {
    const std::int64_t most = (f_.rows_max - f_.shared_rows) / f_.sample_rows;
    std::int64_t count = 0, rows = f_.rows_max;
    for (std::int64_t group = 0; group < f_.groups; ++group) {
      for (std::int64_t left = f_.samples; left > 0; left -= std::min(left, most)) {
        const std::int64_t part = f_.shared_rows + std::min(left, most) * f_.sample_rows;
        if (rows + part > f_.rows_max) {
          ++count;
          rows = 0;
        }
        rows += part;
      }
    }
    return count;
  }

  // Each sample by itself, as many as fit.
  std::int64_t samples() const {
    std::int64_t count = 0, room = 0;
    for (std::int64_t group = 0; group < f_.groups; ++group) {
      for (std::int64_t left = f_.samples; left > 0;) {
        const std::int64_t free = room - f_.shared_rows;  // the group's prompt comes first
        const std::int64_t taken = std::min(left, std::max<std::int64_t>(free, 0) / f_.sample_rows);
        if (taken > 0) room = free - taken * f_.sample_rows;
        left -= taken;
        if (left == 0) break;
        ++count;
        room = f_.rows_max;
      }
    }
    return count;
  }

  const BatchFacts& f_;
};

}  // namespace

core::Result<Batch> batch_of(const BatchFacts& facts) {
  const std::int64_t least = facts.shared_rows + facts.sample_rows;
  if (least > facts.rows_max) {
    return core::fail(core::ErrorCode::kConfig,
                      "the longest sample has " + std::to_string(least) +
                          " rows, a micro-batch holds " + std::to_string(facts.rows_max),
                      "set --train.micro_tokens_max " + std::to_string(least));
  }
  Batch batch;
  batch.facts = facts;
  batch.rows = facts.groups * (facts.shared_rows + facts.samples * facts.sample_rows);
  batch.micro_batches = Cut(facts).micro_batches();
  batch.rounds = over(batch.micro_batches, facts.lanes);
  batch.lanes_of_rank = over(facts.lanes, facts.ranks);
  return batch;
}

}  // namespace troupe::plan
