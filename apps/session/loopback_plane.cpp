#include "apps/session/loopback_plane.hpp"

#include "apps/session/roles/role_devices.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/wanted_roles.hpp"
#include "runtime/weights/local_channel.hpp"

#include <algorithm>
#include <utility>

namespace troupe::session {
namespace {

constexpr core::RunId kRun{1};  // any number will do: no other run is on this network

// Passes weights by pointer where policy and engines share a memory: on the CPU, or on one GPU with
// one thread.
OneProcess shared_by_roles(const config::TrainConfig& config,
                           std::unique_ptr<model::ParamStore> params,
                           std::unique_ptr<actors::reward::RewardCalls> reward) {
  OneProcess shared;
  shared.config = config;
  shared.params = std::move(params);
  shared.reward = std::move(reward);
  // Generators get threads of their own. Only a single generator of a synchronous run takes turns
  // with the trainer.
  shared.generator_threads = config.train.staleness_max > 0 || config.rollout.generators > 1;
  const auto& engines = config.rollout.device;
  const bool one_memory = std::ranges::all_of(
      engines, [&](const config::Device& device) { return device == config.actor.device.front(); });
  const bool by_pointer =
      one_memory && (!config.actor.device.front().gpu || !shared.generator_threads);
  const auto channel = by_pointer
                           ? std::make_shared<weights::LocalWeightChannel>()
                           : std::make_shared<weights::LocalWeightChannel>(forward_dtype(config));
  shared.publisher = channel;
  shared.subscriber = channel;
  return shared;
}

}  // namespace

LoopbackPlane::LoopbackPlane(config::TrainConfig config,
                             std::uint64_t updates,
                             std::unique_ptr<model::ParamStore> params,
                             std::unique_ptr<actors::reward::RewardCalls> reward)
    : config_(std::move(config)),
      updates_(updates),
      loader_(shared_by_roles(config_, std::move(params), std::move(reward))),
      io_(1),
      network_(timers_) {}

LoopbackPlane::~LoopbackPlane() = default;

Result<std::shared_ptr<cluster::Endpoint>> LoopbackPlane::join(const std::string& name) {
  return network_.join({name, kRun, 1}, io_.make_strand());
}

Result<void> LoopbackPlane::start_roles() {
  return io_.run(start());
}

async::task<Result<void>> LoopbackPlane::start() {
  for (const actors::company::WantedRole& role : wanted_roles(config_)) {
    actors::Spawn spawn;
    spawn.kind = role.kind;
    spawn.name = role.name;
    spawn.threads = static_cast<std::uint32_t>(config_.train.threads);
    spawn.settings = {{"updates", std::to_string(updates_)}};
    TROUPE_CO_TRY_ASSIGN(recipe, co_await loader_.make(std::move(spawn)));
    if (!recipe.arithmetic.empty()) {
      classes_.note(role.name, recipe.arithmetic, device_of(config_, role.kind, role.name).text());
      TROUPE_CO_TRY(classes_.check(role.name));
    }
    cluster::RoleHost::Hooks hooks;
    hooks.failed = [this](const std::string& who, const core::Error& error) {
      news_.give_up(error.within(who));
    };
    auto place = join(role.name);
    TROUPE_CO_TRY_ASSIGN(
        host, co_await cluster::host_role(std::move(place), std::move(recipe), std::move(hooks)));
    hosts_.push_back(std::move(host));
  }
  co_return Result<void>();
}

void LoopbackPlane::attach(RunSession& session) {
  if (!news_.attach(session)) return;
  for (const auto& host : hosts_) {
    const std::string& role = host->name();
    if (role.starts_with("generator/") || role.starts_with("environment/")) news_.role_up(role, 1);
  }
}

void LoopbackPlane::stop_roles(bool) {
  news_.detach();
  io_.run(stop());
}

async::task<void> LoopbackPlane::stop() {
  while (!hosts_.empty()) {
    co_await hosts_.back()->stop();
    hosts_.pop_back();
  }
}

}  // namespace troupe::session
