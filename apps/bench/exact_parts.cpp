#include "apps/bench/exact_parts.hpp"

#include "runtime/core/check.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

namespace troupe::bench {
namespace {

std::vector<std::size_t> all_samples(const TranscriptGroup& group) {
  std::vector<std::size_t> samples(group.samples.size());
  std::iota(samples.begin(), samples.end(), std::size_t{0});
  return samples;
}

model::SampleGroup model_group(const Part& part) {
  model::SampleGroup group;
  group.prompt = part.group->prompt;
  for (const std::size_t i : part.samples)
    group.responses.emplace_back(part.group->samples[i].tokens);
  return group;
}

}  // namespace

std::vector<Part> whole_groups(const std::vector<const TranscriptGroup*>& groups) {
  std::vector<Part> parts;
  for (const TranscriptGroup* group : groups)
    parts.push_back({group, all_samples(*group)});
  return parts;
}

std::vector<Part> shuffled_parts(const std::vector<const TranscriptGroup*>& groups,
                                 core::Rng& rng) {
  std::vector<Part> parts;
  for (const TranscriptGroup* group : groups) {
    std::vector<std::size_t> samples = all_samples(*group);
    core::shuffle(samples, rng);
    for (std::size_t begin = 0; begin < samples.size();) {
      const std::size_t size = 1 + rng.next_below(samples.size() - begin);
      const auto first = samples.begin() + static_cast<std::ptrdiff_t>(begin);
      parts.push_back({group, {first, first + static_cast<std::ptrdiff_t>(size)}});
      begin += size;
    }
  }
  core::shuffle(parts, rng);
  return parts;
}

std::vector<PartBatch> pack_parts(std::vector<Part> parts,
                                  std::span<const std::int64_t> row_limits) {
  std::vector<PartBatch> batches;
  std::int64_t rows = 0;
  for (Part& part : parts) {
    const std::int64_t part_rows = model::rows_of(model_group(part));
    const std::size_t last = batches.empty() ? 0 : batches.size() - 1;
    if (batches.empty() || rows + part_rows > row_limits[last % row_limits.size()]) {
      batches.emplace_back();
      rows = 0;
    }
    batches.back().push_back(std::move(part));
    rows += part_rows;
  }
  return batches;
}

std::vector<model::SampleGroup> model_groups(const PartBatch& batch) {
  std::vector<model::SampleGroup> groups;
  for (const Part& part : batch)
    groups.push_back(model_group(part));
  return groups;
}

void Difference::add(const Difference& other) {
  tokens += other.tokens;
  differing_tokens += other.differing_tokens;
  differing_bits += other.differing_bits;
  absolute_max = std::max(absolute_max, other.absolute_max);
}

Difference compare(const PartBatch& batch, std::span<const float> logprobs) {
  Difference result;
  for (const Part& part : batch) {
    for (const std::size_t i : part.samples) {
      for (const float said : part.group->samples[i].logprobs) {
        TROUPE_CHECK(result.tokens < std::ssize(logprobs), "one log-prob for each token");
        const float ours = logprobs[static_cast<std::size_t>(result.tokens++)];
        const std::uint32_t other =
            std::bit_cast<std::uint32_t>(said) ^ std::bit_cast<std::uint32_t>(ours);
        if (other == 0) continue;
        ++result.differing_tokens;
        result.differing_bits += std::popcount(other);
        const double apart = std::abs(static_cast<double>(said) - static_cast<double>(ours));
        result.absolute_max = std::max(result.absolute_max, apart);
      }
    }
  }
  TROUPE_CHECK(result.tokens == std::ssize(logprobs), "no log-prob without a token");
  return result;
}

}  // namespace troupe::bench
