// What the policy says to the critic, as plain values (messages.hpp has the other roles'). An
// update's groups go over in pages of at most one frame, values come back page by page; the returns
// follow in pages, then one request has the critic learn. The critic keeps what it needs for that
// in between.
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

// The groups of an update from place `cursor` on; 0 begins anew.
struct ScoreValues {
  using Reply = CriticValues;
  std::uint64_t update = 0;
  std::uint32_t cursor = 0;
  std::vector<experience::Group> groups;  // prompts and tokens alone
};

struct PutReturns {
  using Reply = Ack;
  std::uint64_t update = 0;
  std::uint32_t cursor = 0;
  std::vector<GroupValues> groups;
};

// Answers when the critic has taken its optimiser steps on the update. `groups`: of the whole
// update.
struct TrainCritic {
  using Reply = Trained;
  std::uint64_t update = 0;
  std::uint32_t groups = 0;
};

}  // namespace troupe::actors
