// A reward of a set as JSON: {"name", "peer", "weight"}. Found by nlohmann's conversions.
#pragma once

#include "actors/protocol/messages_rewards.hpp"

#include <nlohmann/json.hpp>

namespace troupe::actors {

inline void to_json(nlohmann::json& object, const RewardMember& member) {
  object = {{"name", member.name}, {"peer", member.peer}, {"weight", member.weight}};
}

// Throws nlohmann's exceptions when a member is missing or of another type.
inline void from_json(const nlohmann::json& object, RewardMember& member) {
  object.at("name").get_to(member.name);
  object.at("peer").get_to(member.peer);
  object.at("weight").get_to(member.weight);
}

}  // namespace troupe::actors
