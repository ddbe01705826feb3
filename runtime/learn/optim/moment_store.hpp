// One moment of the optimiser: f32 numbers, or fewer bits in blocks (kernels/moment_codes.hpp).
// Owned by an ElementOptimizer, used on its thread; numbers begin as 0.
#pragma once

#include "kernels/moment_codes.hpp"
#include "runtime/core/buffer.hpp"
#include "runtime/core/range.hpp"
#include "runtime/core/team.hpp"

#include <cstdint>
#include <optional>

namespace troupe::learn {

// Which blocks of kernels::kNormChunk elements a process has: its block b is block b * step + at of
// the whole.
struct BlockPlace {
  std::int64_t step = 1, at = 0;
};

class MomentStore {
 public:
  // `code`: none for f32.
  MomentStore(std::int64_t count,
              std::optional<kernels::MomentCode> code,
              BlockPlace place,
              core::Memory& memory);

  std::int64_t size() const { return count_; }
  core::Memory& memory() const { return floats_.memory(); }
  bool compact() const { return code_.has_value(); }
  // The f32 numbers; null if the moment is compact.
  float* floats() { return compact() ? nullptr : floats_.data(); }
  // Operands that expand blocks from `first` on to `numbers`, or compress them from there.
  kernels::CompactMoment operands(std::int64_t first, float* numbers, std::uint32_t seed);

  // The numbers `place` of a compact moment, to and from the host; `team` computes in a device's
  // memory. Writing takes whole blocks that read() has returned, and restores the codes that these
  // came from.
  void read(core::TeamRunner& team, core::Range place, float* to);
  void write(core::TeamRunner& team, core::Range place, const float* from);

 private:
  core::Range blocks_of(core::Range place) const;
  // Runs `use` with the operations of this memory.
  template <class Use>
  void on(core::TeamRunner& team, const Use& use) const;

  std::int64_t count_;
  std::optional<kernels::MomentCode> code_;
  BlockPlace place_;
  core::Buffer<float> floats_;  // the numbers, or the scales of the blocks
  core::Buffer<std::uint8_t> codes_;
};

}  // namespace troupe::learn
