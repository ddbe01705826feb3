// Wires the roles of one process, runs the controller, takes everything down.
#include "apps/session/local_company.hpp"

#include "actors/generator/tokenizer_text.hpp"
#include "apps/cli/placement.hpp"
#include "apps/cli/system_facts.hpp"
#include "apps/session/outcome.hpp"
#include "apps/session/roles/engine_settings.hpp"
#include "apps/session/roles/learn_settings.hpp"
#include "apps/session/roles/model_roles.hpp"
#include "apps/session/roles/policy_settings.hpp"
#include "apps/session/roles/role_devices.hpp"
#include "apps/session/roles/role_factories.hpp"
#include "kernels/ops.hpp"
#include "runtime/async/cpu_pool.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/cluster/loopback/loopback.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/learn/trainers.hpp"
#include "runtime/weights/local_channel.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe::app {
namespace {

using cluster::RoleHost;

// Everything that lives as long as the run.
struct Stage {
  explicit Stage(int threads)
      : pool(threads, &kernels::flush_denormals),
        compute("compute", &kernels::flush_denormals),
        blocking("reward"),
        io(1),
        network(timers) {}

  async::SteadyTimers timers;
  async::CpuPool pool;  // of all roles on the CPU, whichever their thread
  Teams gpus;           // of the roles on `compute`
  std::vector<Teams> generator_gpus;
  async::DeviceThread compute;
  async::DeviceThread blocking;  // rewards wait here
  std::vector<std::unique_ptr<async::DeviceThread>> generator_threads;
  async::IoThreads io;
  cluster::LoopbackNetwork network;
  std::shared_ptr<weights::WeightPublisher> publisher;
  std::shared_ptr<weights::WeightSubscriber> subscriber;
  std::vector<std::unique_ptr<RoleHost>> hosts;
};

class Company {
 public:
  Company(CompanyPlan plan,
          RunInputs inputs,
          std::unique_ptr<actors::GroupSink> sink,
          actors::RunListener& listener)
      : plan_(std::move(plan)),
        inputs_(std::move(inputs)),
        sink_(std::move(sink)),
        listener_(listener),
        stage_(static_cast<int>(plan_.config.train.threads)) {}

  core::Result<void> run() {
    core::Result<void> outcome;
    stage_.io.run(start_into(&outcome));
    if (outcome) outcome = outcome_.wait();
    stage_.io.run(stop());
    stage_.compute.close();
    stage_.blocking.close();
    stage_.generator_threads.clear();
    stage_.io.join();
    return outcome;
  }

 private:
  async::task<core::Result<void>> host(std::string name,
                                       Factory factory,
                                       async::DeviceThread* device,
                                       core::TeamRunner* team = nullptr) {
    cluster::Identity identity{name, core::RunId{run_id_}, 1};
    auto endpoint = stage_.network.join(identity, stage_.io.make_strand());
    if (!endpoint) co_return endpoint.failure();
    RoleHost::Hooks hooks;
    hooks.failed = [this](const cluster::PeerName& who, const core::Error& error) {
      ended(who, error.within(who));
    };
    stage_.hosts.push_back(
        std::make_unique<RoleHost>(std::move(*endpoint), std::move(hooks), device, team));
    co_return co_await stage_.hosts.back()->start(std::move(factory));
  }

  // A role has failed; on its strand. The controller saves first, where there is something to save.
  void ended(const cluster::PeerName& who, core::Error error) {
    if (controller_ == nullptr || who == "controller/0") return outcome_.set(core::fail(error));
    async::post(controller_strand_, [this, error] {
      if (controller_ != nullptr) controller_->end(error);
    });
  }

  // Where a role of that kind computes. A GPU's team is one thread's.
  core::Result<core::TeamRunner*> team_of(const std::string& kind, Teams& gpus) {
    const RoleDevice role = device_of(plan_.config, kind);
    if (!role.gpu()) return static_cast<core::TeamRunner*>(&stage_.pool);
    return gpus.get(role.text(), {role.device});
  }

  async::task<core::Result<void>> start() {
    const config::TrainConfig& config = plan_.config;
    TROUPE_CO_TRY_ASSIGN(team, team_of("policy", stage_.gpus));
    TROUPE_CO_TRY_ASSIGN(settings,
                         policy_settings(config, plan_.run.updates, inputs_.model_folder));
    TROUPE_CO_TRY_ASSIGN(trainers, learn::trainers());
    TROUPE_CO_TRY_ASSIGN(trainer,
                         trainers->policy(std::move(inputs_.params), std::move(settings), *team));
    auto first_weights = trainer->packed();
    DataParts data{data_options(config), std::move(inputs_.prompts), std::move(inputs_.evaluation),
                   std::move(sink_)};
    data.options.earlier_sets = plan_.run.earlier_sets;
    data.options.note = [this](const std::string& text) { listener_.on_note(text); };
    data.options.watched = [this](const actors::GroupCounts& counts) {
      listener_.on_groups(counts);
    };
    TROUPE_CO_TRY(co_await host("data/0", data_factory(std::move(data)), nullptr));
    TROUPE_CO_TRY(co_await start_rewards());
    if (has_reference(config)) {
      std::shared_ptr<const model::PackedWeights> frozen = first_weights;
      TROUPE_CO_TRY_ASSIGN(at, team_of("reference", stage_.gpus));
      if (!config.ref.model_name_or_path.empty() || at != team) {
        TROUPE_CO_TRY_ASSIGN(other, reference_weights(config, *at));
        frozen = std::move(other);
      }
      auto reference = reference_factory(frozen, *at, config.train.micro_tokens_max);
      TROUPE_CO_TRY(co_await host("reference/0", std::move(reference), &stage_.compute, at));
    }
    first_weights.reset();
    open_channel();
    auto policy = policy_factory(std::move(trainer), stage_.publisher, inputs_.model_folder,
                                 critic_link(config));
    TROUPE_CO_TRY(co_await host("policy/0", std::move(policy), &stage_.compute, team));
    text_ = std::make_shared<actors::TokenizerText>(inputs_.tokenizer);
    actors::CompanyPeers peers;
    if (has_critic(config)) {
      peers.critic = "critic/0";
      TROUPE_CO_TRY_ASSIGN(at, team_of("critic", stage_.gpus));
      TROUPE_CO_TRY_ASSIGN(critic, make_critic(config, plan_.run.updates, *at));
      auto made = critic_factory(std::move(critic.trainer), critic.folder);
      TROUPE_CO_TRY(co_await host(peers.critic, std::move(made), &stage_.compute, at));
    }
    peers.generators.clear();
    for (std::size_t i = 0; i < generators(); ++i) {
      peers.generators.push_back("generator/" + std::to_string(i));
      TROUPE_CO_TRY(co_await start_generator(peers.generators.back()));
    }
    ControllerParts parts;
    parts.plan = plan_.run;
    parts.peers = std::move(peers);
    parts.checkpoint = plan_.checkpoint;
    parts.listener = &listener_;
    parts.ended = [this](core::Result<void> ended) { outcome_.set(std::move(ended)); };
    parts.made = [this](actors::Controller& made, async::Executor strand) {
      controller_ = &made;
      controller_strand_ = std::move(strand);
    };
    co_return co_await host("controller/0", controller_factory(std::move(parts)), nullptr);
  }

  // By pointer where policy and engines compute in one memory: on the processor, or on one thread
  // with one GPU.
  void open_channel() {
    const config::Device trains = plan_.config.actor.device;
    const config::Device generates = plan_.config.rollout.device;
    const auto keep = [this](const auto& channel) {
      stage_.publisher = channel;
      stage_.subscriber = channel;
    };
    const bool host = !trains.gpu && !generates.gpu;
    if (host || (trains == generates && !own_threads()))
      return keep(std::make_shared<weights::LocalWeightChannel>());
    keep(std::make_shared<weights::LocalWeightChannel>(forward_dtype(plan_.config)));
  }

  // Whether each generator has a thread of its own; one alone takes turns with the trainer.
  bool own_threads() const { return plan_.run.staleness_max > 0 || generators() > 1; }

  async::task<core::Result<void>> start_rewards() {
    const config::TrainConfig& config = plan_.config;
    const auto deadline = std::chrono::duration_cast<core::Duration>(
        std::chrono::duration<double>(config.reward.deadline_s));
    for (const RewardPart& part : reward_parts(config)) {
      std::unique_ptr<actors::RewardSource> source = std::move(inputs_.reward);
      async::DeviceThread* device = &stage_.blocking;
      core::TeamRunner* team = nullptr;
      if (!part.folder.empty()) {
        TROUPE_CO_TRY_ASSIGN(at, team_of("reward", stage_.gpus));
        TROUPE_CO_TRY_ASSIGN(made, make_model_reward(config, part.folder, *at));
        team = at;
        source = std::move(made);
        device = &stage_.compute;
      }
      auto factory = reward_factory(std::move(source), deadline);
      TROUPE_CO_TRY(co_await host(part.role, std::move(factory), device, team));
    }
    co_return core::Result<void>();
  }

  std::size_t generators() const {
    return static_cast<std::size_t>(std::max<std::int64_t>(plan_.config.rollout.generators, 1));
  }

  async::task<core::Result<void>> start_generator(std::string name) {
    auto& threads = stage_.generator_threads;
    threads.push_back(std::make_unique<async::DeviceThread>(name + " weights"));
    async::DeviceThread& fetch = *threads.back();
    async::DeviceThread* device = &stage_.compute;
    if (own_threads()) {
      threads.push_back(std::make_unique<async::DeviceThread>(name, &kernels::flush_denormals));
      device = threads.back().get();
    }
    Teams* gpus = &stage_.gpus;
    if (device != &stage_.compute) gpus = &stage_.generator_gpus.emplace_back();
    TROUPE_CO_TRY_ASSIGN(team, team_of("generator", *gpus));
    actors::EngineMaker maker = [this, team](std::shared_ptr<const model::PackedWeights> weights) {
      return engine::Engine::create(std::move(weights), engine_limits(plan_.config), inputs_.eos,
                                    text_.get(), *team);
    };
    auto factory = generator_factory(std::move(maker), text_, stage_.subscriber, fetch,
                                     plan_.config.rollout.enable_sleep);
    co_return co_await host(std::move(name), std::move(factory), device, team);
  }

  async::task<void> start_into(core::Result<void>* outcome) { *outcome = co_await start(); }

  async::task<void> stop() {
    controller_ = nullptr;
    for (auto place = stage_.hosts.rbegin(); place != stage_.hosts.rend(); ++place) {
      co_await (*place)->stop();
    }
    stage_.hosts.clear();
  }

  CompanyPlan plan_;
  RunInputs inputs_;
  std::unique_ptr<actors::GroupSink> sink_;
  actors::RunListener& listener_;
  Stage stage_;
  std::uint64_t run_id_ = core::derive_seed(
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()), 1);
  Outcome outcome_;
  actors::Controller* controller_ = nullptr;  // set once all others are there
  async::Executor controller_strand_;
  std::shared_ptr<actors::TokenizerText> text_;
};

}  // namespace

core::Result<void> run_local_company(CompanyPlan plan,
                                     RunInputs inputs,
                                     std::unique_ptr<actors::GroupSink> sink,
                                     actors::RunListener& listener) {
  if (plan.config.train.threads == 0) {
    plan.config.train.threads = usable_cores();
  }
  Company company(std::move(plan), std::move(inputs), std::move(sink), listener);
  return company.run();
}

}  // namespace troupe::app
