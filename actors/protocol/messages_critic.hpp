// The messages from the policy to the critic, as plain values (messages.hpp has the other ones).
// The policy sends an update's groups in pages of at most one frame and gets their values page by
// page; then it sends the returns in pages, then one request to learn. The critic keeps the
// update's data in between.
#pragma once

#include "actors/protocol/messages.hpp"

#include <cstdint>
#include <vector>

namespace troupe::actors {

struct GroupValues {
  std::vector<std::vector<float>> samples;  // one value per response token
};

struct CriticValues {
  std::vector<GroupValues> groups;  // of the page, in its order
};

// Asks for the values of an update's groups, from place `cursor` on; cursor 0 begins anew.
struct ScoreValues {
  using Reply = CriticValues;
  std::uint64_t update = 0;
  std::uint32_t cursor = 0;
  std::vector<experience::Group> groups;  // prompts, tokens and turns alone
};

// The returns (targets of the values) of an update's groups, from place `cursor` on.
struct PutReturns {
  using Reply = Ack;
  std::uint64_t update = 0;
  std::uint32_t cursor = 0;
  std::vector<GroupValues> groups;
};

// Answers when the critic has taken its optimiser steps on the update. `groups`: how many the whole
// update has.
struct TrainCritic {
  using Reply = Trained;
  std::uint64_t update = 0;
  std::uint32_t groups = 0;
};

}  // namespace troupe::actors
