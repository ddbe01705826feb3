// The ranks of gangs that this process plays: each meets the others of its gang through the
// company, and is let go when its role is to stop, so that nobody waits for a gang that is over.
// Owned by the role loader; any thread.
#pragma once

#include "actors/gang/company_rendezvous.hpp"
#include "actors/node/node_role.hpp"
#include "runtime/collective/collectives.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace troupe::app {

class GangRanks {
 public:
  // `ask`: null where no gang can be met.
  explicit GangRanks(actors::AskToMeet ask) : ask_(std::move(ask)) {}

  // Connects a rank that is being started with the others of its gang; blocks until all are
  // connected. `arithmetic`: the class that it computes in. `network`: in which it can be reached
  // from other hosts; "": it cannot. Errors: those of Collectives::connect, MeetGang and
  // net::own_address_in; kClosed (abandoned); kUnsupported (no gang can be met from here).
  core::Result<std::shared_ptr<collective::Collectives>> join(const actors::Spawn& spawn,
                                                              const std::string& arithmetic,
                                                              const std::string& network);

  // RoleMaker::abandon and abandon_starts.
  void abandon(const std::string& role, std::uint64_t epoch);
  void abandon_starts();

 private:
  struct Rank {
    std::uint64_t epoch = 0;
    std::weak_ptr<collective::Collectives> gang;
    bool connected = false;
  };
  core::Result<std::shared_ptr<collective::Collectives>> begin(const actors::Spawn& spawn,
                                                               const std::string& network);

  const actors::AskToMeet ask_;
  std::mutex mutex_;
  std::map<std::string, Rank> ranks_;               // by role
  std::map<std::string, std::uint64_t> abandoned_;  // newest start by role
};

}  // namespace troupe::app
