// The ranks of gangs that this process runs: each meets the others of its gang through the
// company, and is let go when its role is to stop, so that nobody waits for a gang that is over.
// Owned by the role loader; any thread. And what else a trainer's role that is a rank is made with,
// to which every rank comes alike.
#pragma once

#include "actors/gang/company_rendezvous.hpp"
#include "actors/node/node_role.hpp"
#include "runtime/collective/collectives.hpp"
#include "runtime/collective/gateway_rendezvous.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/core/team.hpp"
#include "runtime/learn/settings.hpp"
#include "runtime/model/load_elements.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace troupe::session {

class GangRanks {
 public:
  // `ask`: null where no gang can be met. `gateway`: the way to ranks of other hosts; none on the
  // head's own host, which they come to.
  GangRanks(actors::gang::AskToMeet ask, std::optional<collective::GatewayWay> gateway)
      : ask_(std::move(ask)), gateway_(std::move(gateway)) {}

  // Connects a rank that is being started with the others of its gang; blocks until all are
  // connected. `arithmetic`: the class that it computes in. `network`: the one that ranks of
  // several hosts trust, to connect by TCP; "": they connect through the gateway. `link`: what this
  // rank has to move the bytes between devices; null on all ranks: nothing lies on devices. Rank 0
  // says which way they go. Errors: those of Collectives::connect and use, GatewayRendezvous::meet,
  // MeetGang and net::own_address_in; kClosed (abandoned); kUnsupported (no gang can be met from
  // here).
  using MakeLink = std::function<core::Result<std::unique_ptr<collective::DeviceLink>>()>;
  core::Result<std::shared_ptr<collective::Collectives>> join(const actors::Spawn& spawn,
                                                              const std::string& arithmetic,
                                                              const std::string& network,
                                                              const MakeLink& link);

  // RoleMaker::abandon and abandon_starts.
  void abandon(const std::string& role, std::uint64_t epoch);
  void abandon_starts();

 private:
  struct Rank {
    std::uint64_t epoch = 0;
    std::weak_ptr<collective::Collectives> gang;
    // Carries bytes of the gang. Stays until the next start, so that its last words get through.
    std::shared_ptr<collective::GatewayRendezvous> through{};
    bool connected = false;
  };
  core::Result<std::shared_ptr<collective::Collectives>> begin(const actors::Spawn& spawn,
                                                               const std::string& network);
  core::Result<void> connect(collective::Collectives& gang,
                             const actors::Spawn& spawn,
                             std::unique_ptr<collective::Rendezvous> company,
                             const std::string& network);

  const actors::gang::AskToMeet ask_;
  const std::optional<collective::GatewayWay> gateway_;
  std::mutex mutex_;
  std::map<std::string, Rank> ranks_;               // by role
  std::map<std::string, std::uint64_t> abandoned_;  // newest start by role
};

// What a rank reads of the weights that it starts from: at stage 3, on processors, its own blocks.
// Null: everything. `optim`: of the trainer.
model::ElementsToRead elements_to_read(const actors::Spawn& spawn,
                                       const config::TrainConfig& config,
                                       const learn::OptimSettings& optim,
                                       core::TeamRunner& team);

// How the ranks' devices exchange bytes; null where none of the ranks is on a GPU. `team`, on which
// this one computes, outlives the link.
GangRanks::MakeLink link_of_rank(const actors::Spawn& spawn,
                                 const config::TrainConfig& config,
                                 core::TeamRunner& team);

}  // namespace troupe::session
