// Wires the roles of one process, runs the controller, takes everything down.
#include "apps/troupe/train/local_company.hpp"

#include <algorithm>
#include <future>
#include <mutex>
#include <utility>
#include <vector>

#include "actors/controller/controller.hpp"
#include "actors/data/data_role.hpp"
#include "actors/generator/generator_role.hpp"
#include "actors/generator/tokenizer_text.hpp"
#include "actors/policy/policy_role.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "actors/reference/reference_role.hpp"
#include "actors/reward/reward_role.hpp"
#include "apps/troupe/system_facts.hpp"
#include "apps/troupe/train/learn_settings.hpp"
#include "kernels/ops.hpp"
#include "runtime/async/cpu_pool.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/cluster/loopback/loopback.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/weights/local_channel.hpp"

namespace troupe::app {
namespace {

using cluster::RoleHost;

// How the run ended: what the controller says, or the first error that escaped another role.
class Outcome {
 public:
  void set(core::Result<void> result) {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(set_, true)) promise_.set_value(std::move(result));
  }
  core::Result<void> wait() { return promise_.get_future().get(); }

 private:
  std::mutex mutex_;
  bool set_ = false;
  std::promise<core::Result<void>> promise_;
};

// The controller as a role: it asks, and answers nothing.
class ControllerRole final : public cluster::Role {
 public:
  ControllerRole(std::unique_ptr<actors::Controller> controller, std::string checkpoint,
                 Outcome& outcome)
      : controller_(std::move(controller)),
        checkpoint_(std::move(checkpoint)),
        outcome_(outcome) {}

  async::task<core::Result<wire::Frame>> handle(wire::Frame request) override {
    co_return core::fail(core::ErrorCode::kUnsupported,
                         "the controller does not answer " + wire::frame_kind(request));
  }
  async::task<core::Result<void>> run() override {
    auto played = co_await play();
    outcome_.set(std::move(played));
    co_return core::Result<void>();
  }

 private:
  async::task<core::Result<void>> play() {
    if (!checkpoint_.empty()) TROUPE_CO_TRY(co_await controller_->load(checkpoint_));
    co_return co_await controller_->run();
  }

  std::unique_ptr<actors::Controller> controller_;
  std::string checkpoint_;
  Outcome& outcome_;
};

// Everything that lives as long as the run.
struct Stage {
  explicit Stage(int threads)
      : pool(threads, &kernels::flush_denormals),
        compute("compute", &kernels::flush_denormals),
        blocking("reward"),
        io(1),
        network(timers) {}

  async::SteadyTimers timers;
  async::CpuPool pool;
  async::DeviceThread compute;
  async::DeviceThread blocking;  // Python rewards wait here
  async::IoThreads io;
  cluster::LoopbackNetwork network;
  std::shared_ptr<weights::LocalWeightChannel> channel =
      std::make_shared<weights::LocalWeightChannel>();
  std::vector<std::unique_ptr<async::DeviceThread>> generator_threads;
  std::vector<std::unique_ptr<RoleHost>> hosts;
};

class Company {
 public:
  Company(CompanyPlan plan, RunInputs inputs, std::unique_ptr<actors::GroupSink> sink,
          actors::RunListener& listener)
      : plan_(std::move(plan)),
        inputs_(std::move(inputs)),
        sink_(std::move(sink)),
        listener_(listener),
        stage_(static_cast<int>(plan_.config.train.threads)) {}

  core::Result<void> run() {
    TROUPE_TRY(build_models());
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
  core::Result<void> build_models() {
    TROUPE_TRY_ASSIGN(trainer, learn::PolicyTrainer::create(
                                   std::move(inputs_.params),
                                   trainer_settings(plan_.config, plan_.run.updates), stage_.pool));
    first_weights_ = trainer->packed();
    trainer_ = std::move(trainer);
    text_ = std::make_shared<actors::TokenizerText>(inputs_.tokenizer);
    plan_.run.rewards = actors::DataRoleOptions{}.rewards;  // those of its data role
    return {};
  }

  async::task<core::Result<void>> host(std::string name, RoleHost::Factory factory,
                                       async::DeviceThread* device) {
    cluster::Identity identity{name, core::RunId{run_id_}, 1};
    auto endpoint = stage_.network.join(identity, stage_.io.make_strand());
    if (!endpoint) co_return endpoint.failure();
    RoleHost::Hooks hooks;
    hooks.failed = [this](const cluster::PeerName& who, const core::Error& error) {
      outcome_.set(core::fail(error.within(who)));
    };
    stage_.hosts.push_back(
        std::make_unique<RoleHost>(std::move(*endpoint), std::move(hooks), device, &stage_.pool));
    co_return co_await stage_.hosts.back()->start(std::move(factory));
  }

  async::task<core::Result<void>> start() {
    using namespace actors;
    const bool with_reference = plan_.config.algo.kl.init_coef != 0;
    DataRoleOptions data;
    data.samples = static_cast<std::int32_t>(plan_.config.rollout.n_samples_per_prompt);
    data.seed = static_cast<std::uint64_t>(plan_.config.train.seed);
    data.temperature = plan_.run.sampling.temperature;
    data.with_reference = with_reference;
    auto data_factory = factory_of<DataRole, IssueTickets, ReissueTickets, FetchPrompts, PutGroup,
                                   AwaitGroups, FetchExperience, CommitUpdate, SetRewards,
                                   DrainReward, SaveState, LoadState>([this, data](RoleContext context) {
      return std::make_shared<DataRole>(std::move(context), data, std::move(inputs_.prompts),
                                        std::move(inputs_.evaluation), std::move(sink_));
    });
    TROUPE_CO_TRY(co_await host("data/0", std::move(data_factory), nullptr));
    auto reward_factory = factory_of<RewardRole, Score>([this](RoleContext context) {
      return std::make_shared<RewardRole>(std::move(context), std::move(inputs_.reward));
    });
    TROUPE_CO_TRY(co_await host("reward/0", std::move(reward_factory), &stage_.blocking));
    if (with_reference) {
      auto reference = factory_of<ReferenceRole, ScoreLogprobs>([this](RoleContext context) {
        return std::make_shared<ReferenceRole>(std::move(context), first_weights_, stage_.pool,
                                               plan_.config.train.micro_tokens_max);
      });
      TROUPE_CO_TRY(co_await host("reference/0", std::move(reference), &stage_.compute));
    }
    auto policy = factory_of<PolicyRole, TrainUpdate, PublishWeights, SaveState, LoadState,
                             SaveModel>([this](RoleContext context) {
      return std::make_shared<PolicyRole>(std::move(context), std::move(trainer_), stage_.channel,
                                          "data/0", inputs_.model_folder);
    });
    TROUPE_CO_TRY(co_await host("policy/0", std::move(policy), &stage_.compute));
    for (std::size_t i = 0; i < generators(); ++i) {
      TROUPE_CO_TRY(co_await start_generator("generator/" + std::to_string(i)));
    }
    first_weights_.reset();
    co_return co_await start_controller();
  }

  std::size_t generators() const {
    return static_cast<std::size_t>(std::max<std::int64_t>(plan_.config.rollout.generators, 1));
  }

  // A generator alone takes turns with the trainer; else each has a thread of its own.
  async::task<core::Result<void>> start_generator(std::string name) {
    using namespace actors;
    auto& threads = stage_.generator_threads;
    threads.push_back(std::make_unique<async::DeviceThread>(name + " weights"));
    async::DeviceThread* fetch = threads.back().get();
    async::DeviceThread* device = &stage_.compute;
    if (plan_.run.staleness_max > 0 || generators() > 1) {
      threads.push_back(std::make_unique<async::DeviceThread>(name, &kernels::flush_denormals));
      device = threads.back().get();
    }
    EngineMaker maker = [this](std::shared_ptr<const model::PackedWeights> weights) {
      return engine::Engine::create(std::move(weights), engine::EngineLimits{}, inputs_.eos,
                                    text_.get(), stage_.pool);
    };
    auto factory = factory_of<GeneratorRole, Generate, CutGroups, UpdateWeights>(
        [this, maker, fetch](RoleContext context) {
          return std::make_shared<GeneratorRole>(std::move(context), maker, text_, stage_.channel,
                                                 *fetch, "data/0");
        });
    co_return co_await host(std::move(name), std::move(factory), device);
  }

  async::task<core::Result<void>> start_controller() {
    actors::CompanyPeers peers;
    peers.generators.clear();
    for (std::size_t i = 0; i < generators(); ++i) {
      peers.generators.push_back("generator/" + std::to_string(i));
    }
    RoleHost::Factory factory = [this, peers](const cluster::RoleServices& services)
        -> core::Result<std::unique_ptr<cluster::Role>> {
      return std::unique_ptr<cluster::Role>(std::make_unique<ControllerRole>(
          std::make_unique<actors::Controller>(actors::context_of(services), plan_.run, peers,
                                               listener_),
          plan_.checkpoint, outcome_));
    };
    co_return co_await host("controller/0", std::move(factory), nullptr);
  }

  async::task<void> start_into(core::Result<void>* outcome) { *outcome = co_await start(); }

  async::task<void> stop() {
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
  std::uint64_t run_id_ = core::derive_seed(static_cast<std::uint64_t>(
      std::chrono::steady_clock::now().time_since_epoch().count()), 1);
  Outcome outcome_;
  std::unique_ptr<learn::PolicyTrainer> trainer_;
  std::shared_ptr<const model::PackedWeights> first_weights_;
  std::shared_ptr<actors::TokenizerText> text_;
};

}  // namespace

core::Result<void> run_local_company(CompanyPlan plan, RunInputs inputs,
                                     std::unique_ptr<actors::GroupSink> sink,
                                     actors::RunListener& listener) {
  if (plan.config.train.threads == 0) {
    plan.config.train.threads = usable_cores();
  }
  Company company(std::move(plan), std::move(inputs), std::move(sink), listener);
  return company.run();
}

}  // namespace troupe::app
