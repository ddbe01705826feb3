// What a process has of the weights or of a moment: all numbers, or those of its blocks, one behind
// another (ranks/block_shards.hpp). A view; the owner of the numbers outlives it.
#pragma once

#include "runtime/core/range.hpp"
#include "runtime/core/team.hpp"
#include "runtime/learn/optim/moment_store.hpp"

#include <cstdint>

namespace troupe::learn {

struct HeldNumbers {
  float* at = nullptr;  // null: the numbers are codes of `compact`
  std::int64_t count = 0;
  core::Memory* memory = nullptr;
  MomentStore* compact = nullptr;

  // To and from the host; `team` computes in a device's memory. Compact numbers are written in
  // whole blocks (MomentStore::write).
  void read(core::TeamRunner& team, core::Range place, float* to) const;
  void write(core::TeamRunner& team, core::Range place, const float* from) const;
};

// The numbers in a store or a buffer.
template <class Store>
HeldNumbers held_in(Store& store) {
  return {store.data(), store.size(), &store.memory()};
}
inline HeldNumbers held_in(MomentStore& moment) {
  return {moment.floats(), moment.size(), &moment.memory(), moment.compact() ? &moment : nullptr};
}

inline void HeldNumbers::read(core::TeamRunner& team, core::Range place, float* to) const {
  if (compact != nullptr) return compact->read(team, place, to);
  memory->download(to, at + place.begin, static_cast<std::size_t>(place.size()) * sizeof(float));
}

inline void HeldNumbers::write(core::TeamRunner& team, core::Range place, const float* from) const {
  if (compact != nullptr) return compact->write(team, place, from);
  memory->upload(at + place.begin, from, static_cast<std::size_t>(place.size()) * sizeof(float));
}

}  // namespace troupe::learn
