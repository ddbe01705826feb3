// A state that ranks write together and any number of ranks reads (docs/run_folder.md). Each rank
// writes its blocks (block_shards.hpp) of weights and moments into a file of its own,
// rank-2-of-4.safetensors: tensors `weights`, `adam_m` and `adam_v`, f32, its blocks one behind
// another. Its metadata name rank, number of ranks, version, and the CRC of ranks.json, in which
// rank 0 says where in the buffers the model's tensors lie. A rank holds one piece of at most 4 MiB
// next to its blocks, and reads the bytes of the blocks that it asks for. One thread.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/range.hpp"
#include "runtime/core/result.hpp"
#include "runtime/learn/ranks/block_shards.hpp"
#include "runtime/learn/ranks/rank_group.hpp"
#include "runtime/learn/state/saved_state.hpp"
#include "runtime/store/written_files.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

namespace troupe::learn {

// What a rank writes of a state.
struct OwnParts {
  StateLayouts layouts;
  core::Version version = 0;
  // This rank's blocks of some turns of a part, on the host; valid until the next call.
  std::function<const float*(StatePart part, core::Range turns)> blocks;
};

// Turns that are written or read at a time.
inline constexpr std::int64_t kTurnsAtOnce = 256;

// All ranks call it; each writes its file into `folder`, hashes it on the way, and syncs it.
// Returns the files of all, on every rank. Rank 0 looks whether it sees all of them. Errors, on all
// ranks alike: that of the lowest rank which has one, with its host; kResources, if the hosts do
// not share the folder.
core::Result<std::vector<store::CheckpointFile>> write_parts(RankGroup& group,
                                                             const std::filesystem::path& folder,
                                                             const OwnParts& own);

// Removes what a state in `folder` has of another number of ranks (0: of one process) than `ranks`.
core::Result<void> remove_other_parts(const std::filesystem::path& folder, int ranks);

// The parts of `ranks` ranks. Checks what belongs to all files. Errors, naming the file: kData.
core::Result<std::unique_ptr<SavedState>> open_parts(const std::filesystem::path& folder,
                                                     int ranks,
                                                     core::Version version,
                                                     const StateLayouts& layouts);

}  // namespace troupe::learn
