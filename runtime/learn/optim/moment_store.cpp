#include "runtime/learn/optim/moment_store.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"

#include <algorithm>
#include <vector>

namespace troupe::learn {
namespace {

using kernels::kNormChunk;

// Blocks that are expanded or compressed at a time on their way to and from the host.
constexpr std::int64_t kMovedBlocks = 256;

std::int64_t scales_in(std::int64_t count, const std::optional<kernels::MomentCode>& code) {
  if (!code) return count;
  return kernels::has_scales(*code) ? (count + kNormChunk - 1) / kNormChunk : 0;
}

std::int64_t code_bytes_in(std::int64_t count, const std::optional<kernels::MomentCode>& code) {
  return code ? count * kernels::code_bytes(*code) : 0;
}

std::size_t bytes(std::int64_t floats) {
  return static_cast<std::size_t>(floats) * sizeof(float);
}

}  // namespace

MomentStore::MomentStore(std::int64_t count,
                         std::optional<kernels::MomentCode> code,
                         BlockPlace place,
                         core::Memory& memory)
    : count_(count),
      code_(code),
      place_(place),
      floats_(scales_in(count, code), memory),
      codes_(code_bytes_in(count, code), memory) {}

kernels::CompactMoment MomentStore::operands(std::int64_t first,
                                             float* numbers,
                                             std::uint32_t seed) {
  TROUPE_CHECK(compact(), "a moment that has codes");
  return {.code = *code_,
          .count = count_,
          .codes = codes_.data(),
          .scales = floats_.data(),
          .numbers = numbers,
          .first = first,
          .seed = seed,
          .block_step = place_.step,
          .block_at = place_.at};
}

template <class Use>
void MomentStore::on(core::TeamRunner& team, const Use& use) const {
  if (memory().on_host()) return use(kernels::host_ops());
  team.run([&](core::Team) { use(kernels::ops()); });
}

core::Range MomentStore::blocks_of(core::Range place) const {
  return {place.begin / kNormChunk, (place.end + kNormChunk - 1) / kNormChunk};
}

void MomentStore::read(core::TeamRunner& team, core::Range place, float* to) {
  const core::Range all = blocks_of(place);
  core::Buffer<float> expanded(std::min(all.size(), kMovedBlocks) * kNormChunk, memory());
  for (std::int64_t first = all.begin; first < all.end; first += kMovedBlocks) {
    const core::Range blocks{first, std::min(first + kMovedBlocks, all.end)};
    on(team, [&](const kernels::Ops& ops) {
      ops.expand_moment(operands(first, expanded.data(), 0), blocks);
    });
    const core::Range part{std::max(place.begin, first * kNormChunk),
                           std::min(place.end, blocks.end * kNormChunk)};
    memory().download(to + (part.begin - place.begin),
                      expanded.data() + (part.begin - first * kNormChunk), bytes(part.size()));
  }
}

void MomentStore::write(core::TeamRunner& team, core::Range place, const float* from) {
  TROUPE_CHECK(
      place.begin % kNormChunk == 0 && (place.end % kNormChunk == 0 || place.end == count_),
      "whole blocks of a compact moment");
  const core::Range all = blocks_of(place);
  core::Buffer<float> numbers(std::min(all.size(), kMovedBlocks) * kNormChunk, memory());
  for (std::int64_t first = all.begin; first < all.end; first += kMovedBlocks) {
    const core::Range blocks{first, std::min(first + kMovedBlocks, all.end)};
    const core::Range part{first * kNormChunk, std::min(place.end, blocks.end * kNormChunk)};
    memory().upload(numbers.data(), from + (part.begin - place.begin), bytes(part.size()));
    kernels::CompactMoment moment = operands(first, numbers.data(), 0);
    moment.rounding = kernels::MomentRounding::kNearest;
    on(team, [&](const kernels::Ops& ops) { ops.compress_moment(moment, blocks); });
  }
}

}  // namespace troupe::learn
