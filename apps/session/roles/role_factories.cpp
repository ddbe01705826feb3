// Wiring of the roles.
#include "apps/session/roles/role_factories.hpp"

#include "actors/critic/critic_relay.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "apps/session/roles/controller_json.hpp"
#include "apps/session/roles/learn_settings.hpp"
#include "apps/session/roles/model_roles.hpp"

#include <utility>

namespace troupe::app {

using namespace actors;

namespace {

// What others may ask the controller. Its functions are coroutines and no mere forwarders: g++ 12
// moves the argument of a plain function inside a `co_await` expression byte by byte
// (docs/adr/0001).
class ControllerFront {
 public:
  explicit ControllerFront(std::shared_ptr<Controller> controller)
      : controller_(std::move(controller)) {}
  async::task<core::Result<RewardsChanged>> on(AttachReward request) {
    auto changed = co_await controller_->on(std::move(request));
    co_return changed;
  }
  async::task<core::Result<RewardsChanged>> on(ReweightReward request) {
    auto changed = co_await controller_->on(std::move(request));
    co_return changed;
  }
  async::task<core::Result<RewardsChanged>> on(DetachReward request) {
    auto changed = co_await controller_->on(std::move(request));
    co_return changed;
  }
  async::task<core::Result<Published>> on(AwaitPublished request) {
    auto newest = co_await controller_->on(std::move(request));
    co_return newest;
  }
  async::task<core::Result<Status>> on(QueryStatus) {
    co_return Status{controller_json(controller_->snapshot())};
  }

 private:
  std::shared_ptr<Controller> controller_;
};

// The controller as a role: it asks, and answers those who change rewards.
class ControllerRole final : public cluster::Role {
 public:
  ControllerRole(std::shared_ptr<Controller> controller, ControllerParts parts, std::string self)
      : controller_(std::move(controller)),
        parts_(std::move(parts)),
        handler_(handler_of(std::make_shared<ControllerFront>(controller_), std::move(self))) {}

  async::task<core::Result<wire::Frame>> handle(wire::Frame request) override {
    return handler_(std::move(request));
  }
  async::task<core::Result<void>> run() override {
    auto played = co_await play();
    parts_.ended(std::move(played));
    co_return core::Result<void>();
  }
  wire::Amounts amounts() const override {
    const ControllerSnapshot now = controller_->snapshot();
    return {{"version", static_cast<double>(now.version)},
            {"updates", static_cast<double>(now.done)},
            {"queue", static_cast<double>(now.queue)}};
  }

 private:
  async::task<core::Result<void>> play() {
    if (!parts_.checkpoint.empty()) {
      TROUPE_CO_TRY(co_await controller_->load(parts_.checkpoint));
    }
    co_return co_await controller_->run();
  }

  std::shared_ptr<Controller> controller_;
  ControllerParts parts_;
  cluster::Handler handler_;
};

}  // namespace

Factory policy_factory(std::unique_ptr<learn::PolicyTrainer> trainer,
                       std::shared_ptr<weights::WeightPublisher> publisher,
                       std::filesystem::path model_folder,
                       CriticLink critic) {
  auto held = std::make_shared<std::unique_ptr<learn::PolicyTrainer>>(std::move(trainer));
  return factory_of<PolicyRole>([held, publisher, model_folder, critic](RoleContext context) {
    return std::make_shared<PolicyRole>(std::move(context), std::move(*held), publisher, "data/0",
                                        model_folder, critic);
  });
}

Factory critic_factory(std::unique_ptr<learn::CriticTrainer> trainer,
                       std::filesystem::path model_folder) {
  auto held = std::make_shared<std::unique_ptr<learn::CriticTrainer>>(std::move(trainer));
  return factory_of<CriticRole>([held, model_folder](RoleContext context) {
    return std::make_shared<CriticRole>(std::move(context), std::move(*held), model_folder);
  });
}

Factory generator_factory(EngineMaker maker,
                          std::shared_ptr<const engine::TokenText> text,
                          std::shared_ptr<weights::WeightSubscriber> subscriber,
                          async::DeviceThread& fetch_thread,
                          bool sleep_idle) {
  return factory_of<GeneratorRole>(
      [maker, text, subscriber, &fetch_thread, sleep_idle](RoleContext context) {
        return std::make_shared<GeneratorRole>(std::move(context), maker, text, subscriber,
                                               fetch_thread, "data/0", sleep_idle);
      });
}

Factory reference_factory(std::shared_ptr<const model::PackedWeights> weights,
                          core::TeamRunner& team,
                          std::int64_t micro_rows_max) {
  return factory_of<ReferenceRole>([weights, &team, micro_rows_max](RoleContext context) {
    return std::make_shared<ReferenceRole>(std::move(context), weights, team, micro_rows_max);
  });
}

Factory reward_factory(std::unique_ptr<RewardSource> source, core::Duration deadline) {
  auto held = std::make_shared<std::unique_ptr<RewardSource>>(std::move(source));
  return factory_of<RewardRole>([held, deadline](RoleContext context) {
    return std::make_shared<RewardRole>(std::move(context), std::move(*held),
                                        RewardRoleOptions{deadline});
  });
}

Factory data_factory(DataParts parts) {
  auto held = std::make_shared<DataParts>(std::move(parts));
  return factory_of<DataRole>([held](RoleContext context) {
    return std::make_shared<DataRole>(std::move(context), std::move(held->options),
                                      std::move(held->prompts), std::move(held->evaluation),
                                      std::move(held->sink));
  });
}

Factory controller_factory(ControllerParts parts) {
  auto held = std::make_shared<ControllerParts>(std::move(parts));
  return
      [held](
          const cluster::RoleServices& services) -> core::Result<std::unique_ptr<cluster::Role>> {
        auto controller = std::make_shared<Controller>(context_of(services), held->plan,
                                                       held->peers, *held->listener);
        if (held->made) held->made(*controller, services.executor);
        return std::unique_ptr<cluster::Role>(std::make_unique<ControllerRole>(
            controller, std::move(*held), services.transport->identity().self));
      };
}

CriticLink critic_link(const config::TrainConfig& config) {
  if (!has_critic(config)) return {};
  const bool here = config.cluster.transport == config::Transport::kLoopback;
  return {here ? "critic/0" : kCriticRelay, config.train.staleness_max == 0};
}

DataRoleOptions data_options(const config::TrainConfig& config) {
  DataRoleOptions options;
  options.samples = static_cast<std::int32_t>(config.rollout.n_samples_per_prompt);
  options.seed = static_cast<std::uint64_t>(config.train.seed);
  options.temperature = static_cast<float>(config.rollout.temperature);
  options.with_reference = has_reference(config);
  options.patience.away_max = std::chrono::duration_cast<core::Duration>(
      std::chrono::duration<double>(config.reward.away_s));
  options.rewards.clear();
  for (const RewardPart& part : reward_parts(config))
    options.rewards.push_back({part.name, part.role, part.weight});
  if (config.algo.dynamic_filtering_enable) {
    options.filter =
        MeanRange{config.algo.dynamic_filtering_range[0], config.algo.dynamic_filtering_range[1]};
    // Without a number of updates the passes over the data decide when a run has had enough.
    if (config.train.max_steps == 0) {
      options.episodes = static_cast<std::uint64_t>(config.train.num_episodes);
    }
  }
  return options;
}

}  // namespace troupe::app
