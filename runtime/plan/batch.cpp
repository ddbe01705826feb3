#include "runtime/plan/batch.hpp"

#include <algorithm>
#include <string>

namespace troupe::plan {
namespace {

std::int64_t over(std::int64_t count, std::int64_t parts) {
  return (count + parts - 1) / parts;
}

// Without lanes: whole groups as far as they fit, else parts of one group.
std::int64_t plain_micro_batches(const BatchFacts& facts) {
  const std::int64_t group = facts.shared_rows + facts.samples * facts.sample_rows;
  if (group <= facts.rows_max) return over(facts.groups, facts.rows_max / group);
  const std::int64_t samples = (facts.rows_max - facts.shared_rows) / facts.sample_rows;
  return facts.groups * over(facts.samples, samples);
}

}  // namespace

core::Result<Batch> batch_of(const BatchFacts& facts) {
  const std::int64_t least = facts.shared_rows + facts.sample_rows;
  if (least > facts.rows_max) {
    return core::fail(core::ErrorCode::kConfig,
                      "the longest sample has " + std::to_string(least) +
                          " rows, a micro-batch holds " + std::to_string(facts.rows_max) +
                          "; set --train.micro_tokens_max " + std::to_string(least));
  }
  Batch batch;
  batch.facts = facts;
  batch.rows = facts.groups * (facts.shared_rows + facts.samples * facts.sample_rows);
  const std::int64_t plain = plain_micro_batches(facts);
  const std::int64_t samples = facts.groups * facts.samples;
  batch.micro_batches = std::min(over(plain, facts.lanes) * facts.lanes, std::max(samples, plain));
  batch.rounds = over(batch.micro_batches, facts.lanes);
  batch.lanes_of_rank = over(facts.lanes, facts.ranks);
  return batch;
}

}  // namespace troupe::plan
