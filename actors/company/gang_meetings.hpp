// The meetings of the ranks of gangs (ADR 0026): where each rank listens, and a key for each start
// of a gang, which is never printed. Pure, except that keys are random. Owned by the company, used
// on its strand.
#pragma once

#include "actors/company/role_placement.hpp"
#include "actors/protocol/messages_node.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace troupe::actors::company {

class GangMeetings {
 public:
  // A rank has come; the meeting of an earlier start of its gang is over. Error kUnsupported: it
  // computes in another class of arithmetic than a rank that came before.
  core::Result<void> come(const PlacedRole& rank, const MeetGang& request);
  // What the ranks of that start are told, once all have come.
  std::optional<GangMet> met(const PlacedRole& rank) const;

 private:
  struct Meeting {
    std::uint64_t epoch = 0;
    std::string key;
    std::map<std::uint32_t, MeetGang> ranks;  // those that have come
  };
  std::map<std::string, Meeting> meetings_;  // the last start of each gang
};

}  // namespace troupe::actors::company
