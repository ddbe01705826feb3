// What an update learns from: groups of samples in ticket order, with everything that was recorded
// when they were made. Value types; the policy role owns them for the length of one update.
#pragma once

#include "runtime/core/ids.hpp"

#include <cstdint>
#include <vector>

namespace troupe::learn {

struct TrainSample {
  std::vector<std::int32_t> tokens;     // the response: all chosen by the policy
  std::vector<float> behaviour;         // l_mu per token, at the sampling temperature
  std::vector<core::Version> versions;  // per token
  std::vector<float> reference;         // l_ref per token; empty without a reference model
  std::vector<float> values;            // V_t per token, at the update's start; empty: no critic
  double score = 0;                     // combined reward, before shaping
  bool truncated = false;               // ended by length
};

struct TrainGroup {
  core::Ticket ticket;
  std::vector<std::int32_t> prompt;
  std::vector<TrainSample> samples;
};

}  // namespace troupe::learn
