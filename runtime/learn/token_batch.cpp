// Reducer and sample ranges.
#include "runtime/learn/token_batch.hpp"

#include "runtime/core/check.hpp"

namespace troupe::learn {

double token_weight(Reducer reducer,
                    std::int64_t mini_batches,
                    std::int64_t update_tokens,
                    std::int64_t update_samples,
                    std::int64_t sample_tokens,
                    double constant) {
  const auto steps = static_cast<double>(mini_batches);
  const auto samples = static_cast<double>(update_samples);
  switch (reducer) {
    case Reducer::kTokenMean:
      return steps / static_cast<double>(update_tokens);
    case Reducer::kSampleMean:
      return steps / (samples * static_cast<double>(sample_tokens));
    case Reducer::kConstant:
      break;
  }
  return steps / (samples * constant);
}

std::vector<TokenRange> sample_ranges(const TokenBatch& batch) {
  if (batch.sample_ends.empty()) return {TokenRange{0, batch.size()}};
  std::vector<TokenRange> ranges;
  std::size_t begin = 0;
  for (const std::size_t end : batch.sample_ends) {
    ranges.push_back({begin, end});
    begin = end;
  }
  TROUPE_CHECK(begin == batch.size(), "the samples cover the tokens");
  return ranges;
}

}  // namespace troupe::learn
