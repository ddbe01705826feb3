// Saves a checkpoint whose files one writer writes.
#pragma once

#include "runtime/store/checkpoint_store.hpp"

#include <string>

namespace troupe::test {

template <class Writer>
core::Result<std::filesystem::path> save_checkpoint(const store::CheckpointStore& checkpoints,
                                                    std::uint64_t step,
                                                    const std::string& state_json,
                                                    Writer&& writer) {
  TROUPE_TRY_ASSIGN(folder, checkpoints.begin(step));
  TROUPE_TRY(writer(folder.path()));
  return checkpoints.commit(step, std::move(folder), state_json);
}

}  // namespace troupe::test
