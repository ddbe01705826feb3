#include "apps/session/roles/gang_ranks.hpp"

#include "apps/cli/words.hpp"
#include "apps/session/roles/role_devices.hpp"
#include "kernels/cuda/device_team.hpp"
#include "runtime/collective/nccl_link.hpp"
#include "runtime/learn/ranks/block_shards.hpp"
#include "runtime/learn/torch/libtorch.hpp"
#include "runtime/net/own_address.hpp"

#include <algorithm>
#include <utility>

namespace troupe::session {

using Gang = std::shared_ptr<collective::Collectives>;

namespace {

collective::GangId gang_of(const actors::Spawn& spawn) {
  return {core::RunId{spawn.run_id}, spawn.kind, spawn.epoch};
}

}  // namespace

Result<Gang> GangRanks::begin(const actors::Spawn& spawn, const std::string& network) {
  if (!ask_) {
    return core::fail(
        ErrorCode::kUnsupported,
        spawn.name + " is one of " + std::to_string(spawn.ranks) + " ranks, which cannot meet here",
        "use --cluster.transport caf");
  }
  collective::RankOptions options;
  options.gang = gang_of(spawn);
  options.rank = static_cast<int>(spawn.rank);
  options.size = static_cast<int>(spawn.ranks);
  if (spawn.rank == 0) options.log = &cli::warn;  // one line of the gang
  if (!network.empty()) {
    auto own = net::own_address_in(network);
    if (!own) return core::fail(own.error().within("--cluster.trusted_network"));
    options.tcp_host = std::move(*own);
  }
  auto gang = std::make_shared<collective::Collectives>(std::move(options));
  Rank last;  // ends without the lock
  const std::lock_guard lock(mutex_);
  if (abandoned_[spawn.name] >= spawn.epoch)
    return core::fail(ErrorCode::kClosed, spawn.name + " is to stop");
  last = std::exchange(ranks_[spawn.name], {spawn.epoch, gang});
  return gang;
}

// Over the trusted network, or through the gateway of the head if this is another host.
Result<void> GangRanks::connect(collective::Collectives& gang,
                                const actors::Spawn& spawn,
                                std::unique_ptr<collective::Rendezvous> company,
                                const std::string& network) {
  if (!gateway_ || !network.empty()) return gang.connect(*company);
  auto through = std::make_shared<collective::GatewayRendezvous>(std::move(company), gang_of(spawn),
                                                                 *gateway_);
  TROUPE_TRY(gang.connect(*through));
  through->complete();
  const std::lock_guard lock(mutex_);
  ranks_[spawn.name].through = std::move(through);
  return {};
}

Result<Gang> GangRanks::join(const actors::Spawn& spawn,
                             const std::string& arithmetic,
                             const std::string& network,
                             const MakeLink& link) {
  TROUPE_TRY_ASSIGN(gang, begin(spawn, network));
  auto company =
      std::make_unique<actors::gang::CompanyRendezvous>(ask_, spawn.name, spawn.epoch, arithmetic);
  TROUPE_TRY(connect(*gang, spawn, std::move(company), network));
  if (link) TROUPE_TRY(gang->use(link()));
  if (spawn.rank == 0 && !gang->link_name().empty()) {
    cli::say("the ranks of " + spawn.kind + " move bytes between their devices by " +
             gang->link_name());
  }
  const std::lock_guard lock(mutex_);
  ranks_[spawn.name].connected = true;
  return gang;
}

void GangRanks::abandon(const std::string& role, std::uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  std::uint64_t& newest = abandoned_[role];
  newest = std::max(newest, epoch);
  const auto rank = ranks_.find(role);
  if (rank == ranks_.end() || (epoch != 0 && rank->second.epoch > epoch)) return;
  if (const Gang gang = rank->second.gang.lock()) gang->abort();
}

void GangRanks::abandon_starts() {
  const std::lock_guard lock(mutex_);
  for (const auto& [role, rank] : ranks_) {
    const Gang gang = rank.gang.lock();
    if (gang && !rank.connected) gang->abort();
  }
}

model::ElementsToRead elements_to_read(const actors::Spawn& spawn,
                                       const config::TrainConfig& config,
                                       const learn::OptimSettings& optim,
                                       core::TeamRunner& team) {
  const bool divided = spawn.ranks > 1 && config.train.zero_stage == 3 &&
                       optim.trained.everything() && team.memory().on_host();
  if (!divided) return nullptr;
  return [rank = static_cast<int>(spawn.rank), ranks = static_cast<int>(spawn.ranks)](
             core::Range all) { return learn::BlockShards::of_rank(rank, ranks, all); };
}

GangRanks::MakeLink link_of_rank(const actors::Spawn& spawn,
                                 const config::TrainConfig& config,
                                 core::TeamRunner& team) {
  bool any = false;
  for (std::uint32_t rank = 0; rank < spawn.ranks; ++rank) {
    const std::string name = spawn.kind + "/" + std::to_string(rank);
    any = any || device_of(config, spawn.kind, name).gpu();
  }
  if (!any) return nullptr;
  return [&team]() -> core::Result<std::unique_ptr<collective::DeviceLink>> {
    auto* const own = dynamic_cast<kernels::cuda::DeviceTeam*>(&team);
    if (own == nullptr)
      return core::fail(core::ErrorCode::kUnsupported, "it computes on processors");
    return collective::make_nccl_link(own->device(), learn::packages_beside_libtorch());
  };
}

}  // namespace troupe::session
