// The gangs of a placement (ADR 0026): ranks, which are roles of one kind, that are started, lost
// and numbered as one. They start together, each on a node of its own and all with one epoch, once
// there is a place for each. When one is lost, stopped or moved, `break_up` says which others must
// be taken down. A gang that was whole once starts with fewer ranks, the lowest numbers, when for
// kGangWait there was no place for a rank that any node may run. `roomy` names one that has had a
// node for each of the others for kGangRoom_min, or for longer when it falls short again and again.
// Pure. Part of RolePlacement, whose roles and offers it is given.
#pragma once

#include "actors/company/node_offers.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors::company {

struct RoleGang {
  std::vector<std::string> names;                // by rank
  std::uint32_t size = 0;                        // ranks of the present start, or last
  bool whole = false;                            // it had all of its ranks once
  std::optional<core::TimePoint> short_since{};  // since when there is no place for some
  std::optional<core::TimePoint> torn_since{};   // since when a rank of an earlier head is missing
  std::optional<core::TimePoint> roomy_since{};  // since when there is a place for all others
  core::Duration room{};                         // how long there must be a place for all
  core::TimePoint fell_short{};                  // when it last lost ranks without a place
};

class RoleGangs {
 public:
  explicit RoleGangs(std::uint64_t generation) : generation_(generation) {}

  // A role is the next rank of the gang of its kind.
  void add(const std::string& name, PlacedRoles& roles);

  // Starts those that can be started now, and adds their ranks to `due`.
  void start_due(PlacedRoles& roles,
                 const NodeOffers& offers,
                 core::TimePoint now,
                 std::vector<PlacedRole>& due);
  // Whether a rank that an earlier head started with this epoch may be taken over: only with the
  // others of the same start.
  bool takes(const PlacedRole& rank, std::uint64_t epoch, const PlacedRoles& roles) const;
  // The rank was taken over: its gang is known to be whole.
  void taken(const PlacedRole& rank) {
    if (!rank.gang.empty()) gangs_.at(rank.gang).whole = true;
  }

  struct Broken {
    PlacedRole rank;
    core::Error cause;
  };
  // The ranks that are starting or up and whose gang is not whole any more. They are being stopped
  // from now on, and start again with the gang as soon as all of them are lost.
  std::vector<Broken> break_up(PlacedRoles& roles, const NodeOffers& offers, core::TimePoint now);

  // A gang that works with fewer than its ranks and may start with all; "" when there is none.
  std::string roomy(const PlacedRoles& roles, const NodeOffers& offers, core::TimePoint now);

  std::size_t wanted(const std::string& gang) const { return gangs_.at(gang).names.size(); }
  // False for the ranks that the gang's present start, or last, is without.
  bool has(const PlacedRole& rank) const { return rank.rank < gangs_.at(rank.gang).size; }

 private:
  std::uint64_t generation_;
  std::map<std::string, RoleGang> gangs_;  // by kind
};

}  // namespace troupe::actors::company
