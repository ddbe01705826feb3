// What a process has of the tensors of a model's state (weights and moments), and how it writes
// them to files and reads them back. One process, or rank 0 at stage 0, writes them as
// weights.safetensors, adam_m.safetensors and adam_v.safetensors with Hugging Face names; at stages
// 1 to 3 each rank writes its blocks (state_parts.hpp). Views: the numbers outlive the object. One
// thread; a device's numbers pass through host memory, a piece at a time.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/learn/optim/held_numbers.hpp"
#include "runtime/learn/ranks/rank_group.hpp"
#include "runtime/learn/state/saved_state.hpp"
#include "runtime/store/written_files.hpp"

#include <array>
#include <filesystem>
#include <vector>

namespace troupe::learn {

// All numbers of a part of the state, or those of this rank's blocks, one after another.
struct HeldPart {
  HeldNumbers numbers;
  bool whole = true;
};

class HeldState {
 public:
  // `group`: the ranks that have the state in parts; null if this process has all of it. `team`
  // computes in the memory of numbers that are on a device.
  HeldState(const StateLayouts& layouts,
            const std::array<HeldPart, 3>& parts,
            RankGroup* group,
            core::TeamRunner& team)
      : layouts_(layouts), parts_(parts), group_(group), team_(team) {}

  // Writes all numbers, or with a group those of this rank's blocks; all ranks call it then, and
  // get the files of all.
  using Files = std::vector<store::CheckpointFile>;
  core::Result<Files> write(const std::filesystem::path& folder, core::Version version) const {
    return group_ == nullptr ? write_whole(folder) : write_own(folder, version);
  }
  core::Result<void> read(SavedState& state) const;

 private:
  core::Result<Files> write_whole(const std::filesystem::path& folder) const;
  core::Result<Files> write_own(const std::filesystem::path& folder, core::Version version) const;
  core::Result<void> read_part(SavedState& state, StatePart part) const;
  const HeldPart& of(StatePart part) const { return parts_[index_of(part)]; }

  const StateLayouts layouts_;
  const std::array<HeldPart, 3> parts_;  // by index_of
  RankGroup* const group_;
  core::TeamRunner& team_;
};

}  // namespace troupe::learn
