#include "apps/session/roles/role_loader.hpp"

#include "actors/critic/critic_role.hpp"
#include "actors/gang/leading_trainers.hpp"
#include "actors/generator/generator_role.hpp"
#include "actors/policy/policy_role.hpp"
#include "actors/policy/python_advantage.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "actors/reference/reference_role.hpp"
#include "actors/reference/teacher_server.hpp"
#include "actors/reward/queued_reward.hpp"
#include "actors/reward/reward_role.hpp"
#include "actors/supervised/supervised_role.hpp"
#include "apps/cli/end_tokens.hpp"
#include "apps/cli/words.hpp"
#include "apps/session/roles/contents.hpp"
#include "apps/session/roles/environment_parts.hpp"
#include "apps/session/roles/make_reward.hpp"
#include "apps/session/roles/model_roles.hpp"
#include "apps/session/roles/role_devices.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/roles/supervised_model.hpp"
#include "apps/session/roles/teachers.hpp"
#include "kernels/ops.hpp"
#include "runtime/config/read.hpp"
#include "runtime/dialects/served_model.hpp"
#include "runtime/learn/trainers.hpp"
#include "runtime/model/arithmetic.hpp"
#include "runtime/weights/remote_subscriber.hpp"
#include "runtime/weights/shared_publisher.hpp"

#include <charconv>

namespace troupe::app {
namespace {

using actors::RoleContext;
using cluster::RoleRecipe;
using core::ErrorCode;
using core::Result;
using RoleFactory = cluster::RoleHost::Factory;

Result<config::TrainConfig> config_of(const actors::Spawn& spawn) {
  TROUPE_TRY_ASSIGN(texts, config::read_yaml(spawn.config, "the run's configuration"));
  config::Builder builder(run_table());
  TROUPE_TRY(builder.set_all(texts));
  return builder.finish();
}

Result<std::uint64_t> number_setting(const actors::Spawn& spawn, const std::string& name) {
  for (const auto& [key, value] : spawn.settings) {
    std::uint64_t number = 0;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), number);
    if (key == name && parsed.ec == std::errc()) return number;
  }
  return core::fail(ErrorCode::kData, "a start of " + spawn.name + " without the setting " + name);
}

std::shared_ptr<actors::GangLink> link_of(std::shared_ptr<collective::Collectives> gang) {
  return std::make_shared<actors::CollectiveLink>(std::move(gang));
}

learn::Ranks ranks_of(const std::shared_ptr<collective::Collectives>& gang,
                      const config::TrainConfig& config) {
  return {gang.get(), static_cast<int>(config.train.zero_stage)};
}

// Refuses the role when its files on this host differ from the run's.
Result<void> check_contents(const Hashing& hashing, const Hashes& theirs) {
  const auto& ours = hashing.get();
  if (!ours) return ours.failure();
  for (const ContentDifference& one : differences(hashing.contents(), theirs, *ours)) {
    const std::string text = "the SHA-256 of " + one.name + " (" + one.place.string() + ") is " +
                             one.ours + "... here and " + one.theirs + "... where the run is";
    if (!one.only_warns) {
      return core::fail(ErrorCode::kConfig, text, "copy what the run has");
    }
    warn(text);
  }
  return {};
}

// The source of a user's own advantages; null without one.
Result<std::shared_ptr<learn::AdvantageSource>> make_advantage(const config::TrainConfig& config) {
  if (config.algo.advantage_file.empty()) return std::shared_ptr<learn::AdvantageSource>();
  actors::AdvantageOptions options;
  options.file = config.algo.advantage_file;
  options.deadline = seconds_of(config.algo.advantage_deadline_s);
  options.seed = static_cast<std::uint64_t>(config.train.seed);
  options.has_reference = has_reference(config);
  options.has_teacher = has_teacher(config);
  options.has_critic = has_critic(config);
  options.note = &warn;
  return actors::make_python_advantage(std::move(options));
}

}  // namespace

struct RoleLoader::Order {
  const config::TrainConfig& config;
  const actors::Spawn& spawn;
};

RoleLoader::RoleLoader(Reach reach,
                       actors::AskToMeet meet,
                       weights::RelayOptions relays,
                       std::optional<collective::GatewayWay> gateway)
    : reach_(std::move(reach)),
      relays_(std::move(relays)),
      gangs_(std::move(meet), std::move(gateway)),
      compute_("compute", &kernels::flush_denormals),
      blocking_("reward") {}

RoleLoader::RoleLoader(OneProcess shared) : RoleLoader(Reach()) {
  shared_ = std::move(shared);
}

RoleLoader::~RoleLoader() = default;

async::task<Result<RoleRecipe>> RoleLoader::make(actors::Spawn spawn) {
  auto job = [this, spawn]() { return load(spawn); };
  auto recipe = co_await compute_.run(std::move(job), async::DeviceQueue::kLoad);
  co_return recipe;
}

std::string RoleLoader::wedged() const {
  const std::chrono::seconds limit{job_limit_s_.load()};
  return limit.count() == 0 ? "" : compute_.wedged(limit);
}

Result<core::TeamRunner*> RoleLoader::team_of(const Order& order,
                                              const std::string& kind,
                                              Teams& teams) {
  const RoleDevice device = device_of(order.config, kind, order.spawn.name);
  Teams& owner = device.gpu() ? teams : teams_;
  return owner.get(device.text(), {device.device.text(), order.spawn.threads});
}

Result<core::TeamRunner*> RoleLoader::team_of(const Order& order) {
  return team_of(order, order.spawn.kind, teams_);
}

async::DeviceThread& RoleLoader::thread_of(const std::string& name, void (*begin)()) {
  auto& thread = threads_[name];
  if (!thread) thread = std::make_unique<async::DeviceThread>(name, begin);
  return *thread;
}

// Loads a role; hashes the files that it reads at the same time.
Result<RoleRecipe> RoleLoader::load(const actors::Spawn& spawn) {
  auto config = shared_.config;
  if (!config) {
    TROUPE_TRY_SET(config, config_of(spawn));
  }
  job_limit_s_ = config->cluster.job_limit_s;
  const Hashes theirs = hashes_of_settings(spawn.settings);
  std::vector<Content> contents;
  if (!theirs.empty()) {
    TROUPE_TRY_SET(contents, contents_of_role(*config, spawn.kind, spawn.name));
  }
  const Hashing hashing(std::move(contents));
  auto recipe = load_kind({*config, spawn});
  if (recipe && !theirs.empty()) TROUPE_TRY(check_contents(hashing, theirs));
  if (recipe) recipe->arithmetic = arithmetic_of({*config, spawn}, recipe->team);
  return recipe;
}

Result<std::shared_ptr<collective::Collectives>> RoleLoader::gang_of(const Order& order,
                                                                     core::TeamRunner& team) {
  if (order.spawn.ranks < 2) return std::shared_ptr<collective::Collectives>();
  return gangs_.join(order.spawn, class_of(order, team), order.config.cluster.trusted_network,
                     link_of_rank(order.spawn, order.config, team));
}

std::string RoleLoader::arithmetic_of(const Order& order, core::TeamRunner* team) {
  const std::string& kind = order.spawn.kind;
  const bool frozen = kind == "reference" || (kind == "teacher" && team != nullptr);
  if (kind != "policy" && kind != "generator" && !frozen) return "";
  return class_of(order, *team);
}

// The class that a role computes in on this team.
std::string RoleLoader::class_of(const Order& order, core::TeamRunner& team) {
  const std::string& kind = order.spawn.kind;
  const kernels::PanelDtype dtype =
      kind == "critic" ? kernels::PanelDtype::kF32 : forward_dtype(order.config);
  const RoleDevice device = device_of(order.config, kind, order.spawn.name);
  std::string& name = arithmetic_[device.device.text() + " " + kernels::name_of(dtype)];
  if (name.empty()) name = model::arithmetic_name(team, dtype);
  return name;
}

Result<RoleRecipe> RoleLoader::load_kind(const Order& order) {
  constexpr std::pair<std::string_view, Recipe (RoleLoader::*)(const Order&)> kKinds[] = {
      {"policy", &RoleLoader::load_policy},
      {"critic", &RoleLoader::load_critic},
      {"generator", &RoleLoader::load_generator},
      {"reference", &RoleLoader::load_reference},
      {"teacher", &RoleLoader::load_teacher},
      {"reward", &RoleLoader::load_reward},
      {"environment", &RoleLoader::load_environment},
      {actors::kAttachedEnvironment, &RoleLoader::load_environment}};
  for (const auto& [kind, load] : kKinds)
    if (kind == order.spawn.kind) return (this->*load)(order);
  return core::fail(ErrorCode::kUnsupported,
                    "this node cannot play a role of kind " + order.spawn.kind);
}

Result<RoleRecipe> RoleLoader::follower(actors::Obey obey,
                                        std::shared_ptr<collective::Collectives> gang,
                                        core::TeamRunner* team) {
  cluster::RoleHost::Factory factory =
      [link = link_of(std::move(gang)), obey = std::move(obey)](
          const cluster::RoleServices& services) mutable -> Result<std::unique_ptr<cluster::Role>> {
    return std::unique_ptr<cluster::Role>(std::make_unique<actors::FollowerRole>(
        actors::context_of(services), std::move(obey), std::move(link), &warn));
  };
  return RoleRecipe{std::move(factory), &compute_, team};
}

Result<RoleRecipe> RoleLoader::load_policy(const Order& order) {
  const config::TrainConfig& config = order.config;
  if (config.method != config::kPpo) return load_supervised(order);
  TROUPE_TRY_ASSIGN(team, team_of(order));
  TROUPE_TRY_ASSIGN(updates, number_setting(order.spawn, "updates"));
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(config.actor.model_name_or_path));
  TROUPE_TRY_ASSIGN(settings, policy_settings(config, updates, folder));
  if (order.spawn.rank == 0) {
    TROUPE_TRY_SET(settings.advantage, make_advantage(config));
  }
  const auto read = elements_to_read(order.spawn, config, settings.optim, *team);
  auto params = std::move(shared_.params);
  if (!params) {
    TROUPE_TRY_SET(params, model::load_elements(folder, model::HeadKind::kLanguage, 0, read));
  }
  TROUPE_TRY_ASSIGN(trainers, learn::trainers());
  TROUPE_TRY_ASSIGN(gang, gang_of(order, *team));
  settings.optim.ranks = ranks_of(gang, config);
  TROUPE_TRY_ASSIGN(trainer, trainers->policy(std::move(params), std::move(settings), *team));
  weights::PublisherOptions publishing;
  publishing.image = forward_dtype(config);
  publishing.gang = gang.get();
  auto publisher = shared_.publisher;
  if (gang) {  // each rank publishes a share
    TROUPE_TRY_ASSIGN(own, weights::SharedWeightPublisher::create(publishing, *team));
    if (order.spawn.rank > 0)
      return follower(actors::obeying(std::move(trainer), std::move(own)), std::move(gang), team);
    const auto link = link_of(std::move(gang));
    trainer = actors::leading_policy(std::move(trainer), link);
    publisher = actors::leading_publisher(std::move(own), link);
  } else if (!publisher) {
    TROUPE_TRY_SET(publisher, weights::SharedWeightPublisher::create(publishing, *team));
  } else if (has_reference(config) && config.ref.model_name_or_path.empty()) {
    TROUPE_TRY_ASSIGN(other, team_of(order, "reference", teams_));
    if (other == team) first_weights_ = trainer->packed();
  }
  auto factory = actors::factory_of<actors::PolicyRole>(
      [trainer = std::move(trainer), publisher, folder,
       critic = critic_link(config)](RoleContext context) mutable {
        return std::make_shared<actors::PolicyRole>(std::move(context), std::move(trainer),
                                                    publisher, "data/0", folder, critic);
      });
  return RoleRecipe{std::move(factory), &compute_, team};
}

// The policy of a supervised method.
Result<RoleRecipe> RoleLoader::load_supervised(const Order& order) {
  const config::TrainConfig& config = order.config;
  TROUPE_TRY_ASSIGN(team, team_of(order));
  TROUPE_TRY_ASSIGN(steps, number_setting(order.spawn, "updates"));
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(config.actor.model_name_or_path));
  const auto read = elements_to_read(order.spawn, config, optim_settings(config), *team);
  auto params = std::move(shared_.params);
  if (!params) {
    TROUPE_TRY_SET(params, supervised_params(config, read));
  }
  const bool scores = params->spec().head == model::HeadKind::kScore;
  TROUPE_TRY_ASSIGN(gang, gang_of(order, *team));
  TROUPE_TRY_ASSIGN(
      trainer, make_supervised(config, steps, std::move(params), *team, ranks_of(gang, config)));
  if (order.spawn.rank > 0)
    return follower(actors::obeying(std::move(trainer)), std::move(gang), team);
  if (gang) trainer = actors::leading_supervised(std::move(trainer), link_of(std::move(gang)));
  auto factory = actors::factory_of<actors::SupervisedRole>(
      [trainer = std::move(trainer), folder, scores](RoleContext context) mutable {
        return std::make_shared<actors::SupervisedRole>(std::move(context), std::move(trainer),
                                                        "data/0", folder, scores);
      });
  return RoleRecipe{std::move(factory), &compute_, team};
}

Result<RoleRecipe> RoleLoader::load_critic(const Order& order) {
  TROUPE_TRY_ASSIGN(team, team_of(order));
  TROUPE_TRY_ASSIGN(updates, number_setting(order.spawn, "updates"));
  TROUPE_TRY_ASSIGN(gang, gang_of(order, *team));
  const auto read = elements_to_read(order.spawn, order.config, {}, *team);
  TROUPE_TRY_ASSIGN(made,
                    make_critic(order.config, updates, *team, ranks_of(gang, order.config), read));
  if (order.spawn.rank > 0)
    return follower(actors::obeying(std::move(made.trainer)), std::move(gang), team);
  if (gang)
    made.trainer = actors::leading_critic(std::move(made.trainer), link_of(std::move(gang)));
  auto factory =
      actors::factory_of<actors::CriticRole>([made = std::move(made)](RoleContext context) mutable {
        return std::make_shared<actors::CriticRole>(std::move(context), std::move(made.trainer),
                                                    made.folder);
      });
  return RoleRecipe{std::move(factory), &compute_, team};
}

Result<void> RoleLoader::load_text(const std::filesystem::path& folder,
                                   const model::ModelSpec& spec) {
  if (text_) return {};
  TROUPE_TRY_ASSIGN(tokenizer, text::Tokenizer::load(folder));
  eos_ = end_tokens(tokenizer.eos_ids(), spec);
  text_ = std::make_shared<actors::TokenizerText>(std::move(tokenizer));
  guides_ = dialects::guides_of(folder, spec.vocab);
  return {};
}

// Reads no weights from files: a generator gets them from the policy.
Result<RoleRecipe> RoleLoader::load_generator(const Order& order) {
  const config::TrainConfig& config = order.config;
  const std::string& name = order.spawn.name;
  const bool own_thread = shared_.generator_threads;
  TROUPE_TRY_ASSIGN(team,
                    team_of(order, "generator", own_thread ? generator_teams_[name] : teams_));
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(config.actor.model_name_or_path));
  TROUPE_TRY_ASSIGN(spec, model::read_spec(folder));
  TROUPE_TRY(load_text(folder, spec));
  actors::EngineMaker maker = [limits = engine_limits(config), eos = eos_, text = text_,
                               team](std::shared_ptr<const model::PackedWeights> first) {
    return engine::Engine::create(std::move(first), limits, eos, text.get(), *team);
  };
  auto subscriber = shared_.subscriber;
  if (!subscriber) {
    subscriber = std::make_shared<weights::RemoteWeightSubscriber>(
        spec, forward_dtype(config), weights::own_host_id(), team->memory(), relays_);
  }
  if (reach_) subscriber = reach_(std::move(subscriber));
  if (faults_ == nullptr) {
    TROUPE_TRY_SET(faults_, FaultPlan::from_environment());
  }
  if (faults_ != nullptr) {
    maker = faults_->around(name, std::move(maker));
    subscriber = faults_->around(name, std::move(subscriber));
  }
  async::DeviceThread& fetch = thread_of(name + " weights");
  auto factory = actors::factory_of<actors::GeneratorRole>([maker, text = text_, subscriber, &fetch,
                                                            sleeps = config.rollout.enable_sleep,
                                                            guides = guides_](RoleContext context) {
    return std::make_shared<actors::GeneratorRole>(std::move(context), maker, text, subscriber,
                                                   fetch, "data/0", sleeps, guides);
  });
  async::DeviceThread& device = own_thread ? thread_of(name, &kernels::flush_denormals) : compute_;
  return RoleRecipe{std::move(factory), &device, team};
}

Result<RoleRecipe> RoleLoader::load_reference(const Order& order) {
  TROUPE_TRY_ASSIGN(team, team_of(order));
  auto frozen = std::exchange(first_weights_, nullptr);
  if (!frozen) {
    TROUPE_TRY_SET(frozen, reference_weights(order.config, *team));
  }
  return frozen_role(order, std::move(frozen), team);
}

Result<RoleRecipe> RoleLoader::load_teacher(const Order& order) {
  const config::TrainConfig& config = order.config;
  for (const TeacherPart& part : teacher_parts(config)) {
    if (part.role != order.spawn.name) continue;
    if (part.url.empty()) {
      TROUPE_TRY_ASSIGN(team, team_of(order));
      TROUPE_TRY_ASSIGN(frozen, teacher_weights(config, part.folder, *team));
      return frozen_role(order, std::move(frozen), team);
    }
    TROUPE_TRY_ASSIGN(spelling, token_spelling(config));
    actors::TeacherServerOptions options{part.url, seconds_of(config.reward.deadline_s), spelling};
    auto factory = actors::factory_of<actors::TeacherServer>(
        [options = std::move(options)](RoleContext context) {
          return std::make_shared<actors::TeacherServer>(std::move(context), options);
        });
    return RoleRecipe{std::move(factory), &blocking_, nullptr};
  }
  return core::fail(ErrorCode::kUnsupported, "the run's configuration has no " + order.spawn.name);
}

// A role that gives log-probs under weights that stay as they are.
Result<RoleRecipe> RoleLoader::frozen_role(const Order& order,
                                           std::shared_ptr<const model::PackedWeights> frozen,
                                           core::TeamRunner* team) {
  auto factory = actors::factory_of<actors::ReferenceRole>(
      [frozen, rows_max = order.config.train.micro_tokens_max](RoleContext context) {
        return std::make_shared<actors::ReferenceRole>(std::move(context), frozen, rows_max);
      });
  return RoleRecipe{std::move(factory), &compute_, team};
}

Result<RoleRecipe> RoleLoader::load_reward(const Order& order) {
  const config::TrainConfig& config = order.config;
  const core::Duration deadline = seconds_of(config.reward.deadline_s);
  for (const RewardPart& part : reward_parts(config)) {
    if (part.role != order.spawn.name) continue;
    const config::TrainConfig own = config_of(config, part);
    if (part.kind == RewardPart::Kind::kJudge) {
      TROUPE_TRY_ASSIGN(judge, make_judge(own));
      return RoleRecipe{reward_factory(std::move(judge), deadline), &blocking_, nullptr};
    }
    if (part.kind == RewardPart::Kind::kSource) {
      auto source = part.role == "reward/0" ? std::move(shared_.reward) : nullptr;
      if (!source) {
        TROUPE_TRY_SET(source, make_reward(own));
      }
      return RoleRecipe{reward_factory(std::move(source), deadline), &blocking_, nullptr};
    }
    TROUPE_TRY_ASSIGN(team, team_of(order));
    TROUPE_TRY_ASSIGN(source, part.kind == RewardPart::Kind::kProcess
                                  ? make_process_reward(own, *team)
                                  : make_model_reward(own, part.folder, *team));
    auto queued = actors::make_queued_reward(std::move(source));
    return RoleRecipe{reward_factory(std::move(queued), deadline), &compute_, team};
  }
  return core::fail(ErrorCode::kUnsupported, "the run's configuration has no " + order.spawn.name);
}

Result<RoleRecipe> RoleLoader::load_environment(const Order& order) {
  config::TrainConfig config = order.config;
  if (own_environment_) take_form(own_environment_->env, config.env);
  TROUPE_TRY_ASSIGN(parts, make_environment(config));
  auto factory = actors::factory_of<actors::EnvironmentRole>(
      [parts = std::move(parts)](RoleContext context) mutable {
        return std::make_shared<actors::EnvironmentRole>(std::move(context), std::move(parts));
      });
  return RoleRecipe{std::move(factory), &thread_of("environment"), nullptr};
}

RoleFactory reward_factory(std::unique_ptr<actors::RewardCalls> calls, core::Duration deadline) {
  return actors::factory_of<actors::RewardRole>(
      [calls = std::move(calls), deadline](RoleContext context) mutable {
        return std::make_shared<actors::RewardRole>(std::move(context), std::move(calls), deadline);
      });
}

}  // namespace troupe::app
