#include "runtime/engine/plain_draws.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

namespace troupe::engine {

void PlainDraws::begin(const StepPlan& step,
                       std::span<const double> uniforms,
                       std::int64_t batch_rows,
                       core::Memory& memory) {
  const std::int64_t head_rows = std::ssize(step.plan().logit_rows);
  uniforms_.assign(uniforms.begin(), uniforms.end());
  rows_.clear();
  for (const DrawJob& job : step.jobs())
    rows_.push_back(static_cast<std::int32_t>(job.logit_row % batch_rows));
  if (step.bucket() > 0) {  // one job per row; the results of the padding rows are not used
    uniforms_.resize(static_cast<std::size_t>(head_rows), -1.0);
    while (size() < head_rows)
      rows_.push_back(static_cast<std::int32_t>(size()));
  }
  inv_temperatures_.assign(step.inv_temperature(), step.inv_temperature() + head_rows);
  std::tie(uniform_at_, row_at_, inv_temperature_at_) =
      placed_.place(memory, uniforms_, rows_, inv_temperatures_);
  drawn_.reserve_discard(2 * std::max(size(), batch_rows), memory);
}

void PlainDraws::draw(const kernels::VocabRows& rows, core::Range of) {
  float* const logprobs = reinterpret_cast<float*>(drawn_.data() + size());
  const kernels::Draws draws{.rows = rows,
                             .uniform = uniform_at_ + of.begin,
                             .row = row_at_ + of.begin,
                             .token = drawn_.data() + of.begin,
                             .logprob = logprobs + of.begin};
  kernels::ops().draw(draws, of.size());
}

std::span<const Drawn> PlainDraws::read() {
  words_.resize(2 * rows_.size());
  drawn_.download(words_);
  results_.clear();
  for (std::size_t i = 0; i < rows_.size(); ++i)
    results_.push_back({words_[i], std::bit_cast<float>(words_[rows_.size() + i])});
  return results_;
}

}  // namespace troupe::engine
