// A prompt with one response, in few words.
#pragma once

#include "actors/protocol/reward_group.hpp"

#include <string>
#include <utility>

namespace troupe::actors::reward {

inline RewardGroup answered(std::string prompt,
                            std::string response,
                            std::string label = "",
                            std::string columns = "{}") {
  return {std::move(prompt), std::move(label), std::move(columns), "", 0, {{std::move(response)}}};
}

}  // namespace troupe::actors::reward
