#include "runtime/learn/loss/token_batch.hpp"

#include "runtime/core/check.hpp"

namespace troupe::learn {

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
