// The controller's state at one moment, for `troupe status` and /status. A plain value.
#pragma once

#include "actors/protocol/messages_rewards.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors::controller {

struct GeneratorLine {
  std::string name;
  std::string state;         // "lost", "stale" (up, no weights yet), "fresh" (holds weights)
  std::uint32_t groups = 0;  // being sampled there
  std::int64_t samples = 0;
  std::optional<core::Version> version;  // the version it reported
};

struct ControllerSnapshot {
  core::Version version = 0;  // newest published
  std::uint64_t done = 0;     // updates
  std::uint64_t issued = 0;   // updates whose tickets are out
  std::uint64_t queue = 0;    // tickets that wait for a generator
  std::vector<GeneratorLine> generators;
  std::vector<std::uint64_t> staleness;  // tokens trained on in this session; index: age in updates
  std::map<std::string, std::uint64_t> counts;  // events that were not planned, by cause
  std::uint64_t reward_set = 0;
  std::vector<RewardMember> rewards;
  std::string formula{};  // of the rewards; "": their weighted sum
};

// As one JSON object.
std::string snapshot_json(const ControllerSnapshot& snapshot);

}  // namespace troupe::actors::controller
