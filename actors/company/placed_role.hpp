// A role that a run wants: which node runs it, in which life, and what befell it before. Plain
// values, which RolePlacement changes.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/core/error.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace troupe::actors::company {

enum class RoleState { kWanted, kStarting, kUp, kStopping };

struct PlacedRole {
  std::string kind;    // "generator"
  std::string name;    // "generator/0"
  std::string bound;   // the one node that may run it; "": any that offers the kind
  bool guest = false;  // bound to a guest, and dropped when the guest leaves
  RoleState state = RoleState::kWanted;
  std::string node{};  // the node that runs it or is starting it
  std::uint64_t epoch = 0;
  core::TimePoint not_before{};  // earliest next start (back-off)
  std::deque<core::TimePoint> losses{};
  core::TimePoint last_sick{};  // when it was last taken down as sick, or starts again after that
  core::Duration sick_pause{};  // least pause after last_sick when it is sick again
  bool sick = false;            // it was last taken down as sick, and has not been up since
  bool moves = false;           // it is being taken down, and not for a fault of its own
  std::string last_cause{};
  core::ErrorCode last_code = core::ErrorCode::kPeerLost;  // of that cause
  std::string gang{};       // the kind, for a rank of a gang; "" for others
  std::uint32_t rank = 0;   // its number
  std::uint32_t ranks = 1;  // of the gang's present start, or last
};
using PlacedRoles = std::map<std::string, PlacedRole>;  // by name

}  // namespace troupe::actors::company
