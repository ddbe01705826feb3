// What rank 0 of a gang has the other ranks do: one call of their trainer. A plain value, and its
// bytes: groups, rows and values as frames, of the same layout as between roles.
#pragma once

#include "actors/protocol/messages_rows.hpp"
#include "runtime/core/result.hpp"
#include "runtime/experience/group.hpp"
#include "runtime/learn/rl/critic_trainer.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::actors::gang {

enum class GangCall : std::uint32_t {
  kPrepare,    // of a policy: with `groups`
  kLearn,      // of a policy
  kPublish,    // of a policy: its weights, each rank a share
  kValues,     // of a critic: of `groups`
  kTrain,      // of a critic: on `groups`, with `old` and `returns`
  kSaveState,  // into `folder`
  kLoadState,  // from `folder`
  kSaveModel,  // into `folder`, with the tokenizer of `other_folder`
  kStep,       // of a supervised trainer: over `rows`
  kEvaluate,   // of a supervised trainer: over `rows`
};
inline constexpr std::uint32_t kGangCalls = static_cast<std::uint32_t>(GangCall::kEvaluate) + 1;

struct GangCommand {
  GangCall call = GangCall::kLearn;
  std::string folder{}, other_folder{};
  std::vector<experience::Group> groups{};
  learn::TokenValues old{}, returns{};
  std::vector<TrainingRow> rows{};
};

// The word for `status`: "train", "save".
const char* word_of(GangCall call);

// Error kInvalidArgument: a group or row is longer than a message may be.
core::Result<std::vector<std::byte>> to_bytes(const GangCommand& command);
// Error kData: not the bytes of a command.
core::Result<GangCommand> command_of(std::span<const std::byte> bytes);

}  // namespace troupe::actors::gang
