// Writes and reads the data role's part of a checkpoint, data_state.json: the position in the
// prompt stream, the open tickets and the reward sets. A resumed run gives the same prompts to the
// same tickets, skips none and uses none twice; it draws samples of open tickets again. Pure but
// for the file. A file with `next_prompt` alone, of an older program, has no open tickets.
// `prompts_ahead`: positions in use above next_prompt, if there are any.
#pragma once

#include "actors/data/ticket_book.hpp"
#include "actors/protocol/messages_rewards.hpp"
#include "runtime/core/result.hpp"
#include "runtime/store/disk.hpp"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace troupe::actors::data {

struct DataState {
  PromptPositions prompts;
  std::vector<SavedTicket> open;                         // by update and slot
  std::vector<SetRewards> reward_sets;                   // sets after set 0 (the configuration's)
  std::uint64_t dropped_samples = 0, failed_groups = 0;  // for human readers; not read back
};

DataState state_of(const TicketBook& book);

// Errors: the disk's (kNoRoom, kResources); kData, naming the file and what is wrong with it.
core::Result<void> write_state(const DataState& state,
                               const std::filesystem::path& folder,
                               store::Disk& disk = store::system_disk());
core::Result<DataState> read_state(const std::filesystem::path& folder,
                                   store::Disk& disk = store::system_disk());

}  // namespace troupe::actors::data
