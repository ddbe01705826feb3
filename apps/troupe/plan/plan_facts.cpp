// What a plan is computed from.
#include "apps/cli/system_facts.hpp"
#include "apps/session/roles/cache_need.hpp"
#include "apps/session/roles/model_roles.hpp"
#include "apps/session/roles/role_devices.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/roles/teachers.hpp"
#include "apps/troupe/plan/plan_flags.hpp"
#include "runtime/learn/chosen.hpp"
#include "runtime/learn/rl/update_context.hpp"
#include "runtime/learn/supervised/methods.hpp"
#include "runtime/model/trained_layout.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace troupe::app {
namespace {

using plan::ModelSizes;

constexpr double kGb_bytes = 1e9;

// The sizes of the models of one run; each config.json is read once.
class Models {
 public:
  Result<std::shared_ptr<const ModelSizes>> get(const std::string& name, model::HeadKind head) {
    auto& known = sizes_[{name, head}];
    if (known) return known;
    TROUPE_TRY_ASSIGN(folder, model::resolve_model(name));
    TROUPE_TRY_ASSIGN(spec, model::read_spec(folder));
    if (head == model::HeadKind::kScore) spec = model::with_score_head(spec);
    known = std::make_shared<const ModelSizes>(std::move(spec));
    return known;
  }

 private:
  std::map<std::pair<std::string, model::HeadKind>, std::shared_ptr<const ModelSizes>> sizes_;
};

Result<plan::Cluster> cluster_of(const PlanFlags& flags, const config::TrainConfig& config) {
  const auto host = static_cast<std::int64_t>(std::llround(flags.host_gb * kGb_bytes));
  if (flags.cluster.empty()) {
    for (const session::RoleDevice& role : session::role_devices(config)) {
      if (!role.gpu()) continue;
      return fail(ErrorCode::kConfig, role.text() + ": how much memory the GPUs have is not known",
                  "give --cluster, such as --cluster 4xA10-24");
    }
    return plan::processors(host);
  }
  TROUPE_TRY_ASSIGN(cluster, plan::parse_cluster(flags.cluster));
  cluster.host_bytes = host;
  return cluster;
}

std::int64_t moment_bytes(const std::string& optim) {
  return learn::Chosen<learn::OptimKind>(optim)->bytes();
}

// Elements under the adapters of a layout.
std::int64_t adapted_elements(const model::ModelSpec& spec, const model::ParamLayout& trained) {
  std::int64_t elements = 0;
  for (const model::LayerAdapters& layer : trained.adapters) {
    for (const model::Linear linear : model::kAllLinears) {
      const model::LinearShape shape = model::shape_of(spec, linear);
      if (layer[model::index_of(linear)].rank > 0) elements += shape.rows * shape.columns;
    }
  }
  return elements;
}

// Ranks and stage: a flag counts before the configuration, which asks for a device for each rank.
struct AskedRanks {
  std::int64_t actor, critic, stage;
  AskedRanks(const config::TrainConfig& config, const PlanFlags& flags)
      : actor(flags.actor_ranks > 0 ? flags.actor_ranks : config.actor.ranks),
        critic(flags.critic_ranks > 0 ? flags.critic_ranks : config.critic.ranks),
        stage(flags.zero_stage >= 0 ? flags.zero_stage : config.train.zero_stage) {}
};

// Builds the roles of one run.
class Roles {
 public:
  Roles(const config::TrainConfig& config, const PlanFlags& flags, const plan::Cluster& cluster)
      : config_(config), flags_(flags), asked_(config, flags), cluster_(cluster) {}

  Result<std::vector<plan::Role>> all(std::int64_t lanes, std::int64_t critic_lanes) {
    if (config_.method != config::kPpo) {
      TROUPE_TRY(add_supervised(lanes));
      return std::move(roles_);
    }
    TROUPE_TRY(add_policy(lanes));
    if (session::has_critic(config_)) TROUPE_TRY(add_critic(critic_lanes));
    TROUPE_TRY(add_engines());
    if (session::has_reference(config_)) TROUPE_TRY(add_reference());
    TROUPE_TRY(add_teachers());
    return add_rewards();
  }

 private:
  bool one_process() const { return config_.cluster.transport == config::Transport::kLoopback; }
  // Whether engines read the policy's own panels: in one process, and in one memory.
  bool shares_panels() const {
    const auto& engines = config_.rollout.device;
    const config::Device& policy = config_.actor.device.front();
    const bool together =
        cluster_.nodes == 1 && asked_.actor == 1 &&
        std::all_of(engines.begin(), engines.end(),
                    [&](const config::Device& device) { return device == policy; });
    return one_process() && (cluster_.on_host() || (together && policy.gpu));
  }
  plan::Ranks ranks(std::int64_t count) const {
    return {count, asked_.stage, flags_.offload || (config_.train.offload && !cluster_.on_host())};
  }

  // A role on a GPU that the configuration names; only one node has names for its devices.
  void put_on(plan::Role& role, const std::string& kind) const {
    if (cluster_.on_host() || cluster_.nodes > 1) return;
    for (const session::RoleDevice& device : session::role_devices(config_)) {
      if (device.kind != kind || !device.gpu()) continue;
      role.named.push_back(device.device.ordinal);
      role.key = device.key;
    }
  }

  Result<plan::TrainerFacts> trained_model(model::HeadKind head, std::int64_t lanes) {
    plan::TrainerFacts facts;
    TROUPE_TRY_SET(facts.model, models_.get(config_.actor.model_name_or_path, head));
    const model::ModelSpec& spec = facts.model->spec();
    TROUPE_TRY_ASSIGN(
        layout, model::trained_layout(spec, session::optim_settings(config_).trained, "actor"));
    facts.trained = layout->total;
    facts.moment_bytes = moment_bytes(config_.actor.optim);
    facts.adapted = adapted_elements(spec, *layout);
    facts.trained_layers = spec.layers - model::first_trained_layer(*layout);
    facts.panels = session::forward_dtype(config_);
    facts.checkpointing = config_.actor.gradient_checkpointing_enable;
    facts.rows = config_.train.micro_tokens_max;
    facts.lanes = lanes;
    facts.ranks = ranks(asked_.actor);
    return facts;
  }

  Result<void> add_supervised(std::int64_t lanes) {
    const learn::Method& method = session::supervised_method(config_);
    TROUPE_TRY_ASSIGN(
        facts,
        trained_model(method.scores ? model::HeadKind::kScore : model::HeadKind::kLanguage, lanes));
    if (method.reference) {
      const std::string& own = config_.ref.model_name_or_path;
      TROUPE_TRY_SET(facts.reference,
                     models_.get(own.empty() ? config_.actor.model_name_or_path : own,
                                 model::HeadKind::kLanguage));
    }
    for (const session::TeacherPart& part : session::teacher_parts(config_)) {
      TROUPE_TRY_ASSIGN(teacher, models_.get(part.folder, model::HeadKind::kLanguage));
      facts.teachers.push_back(std::move(teacher));
    }
    facts.scores = method.reference || method.teacher || !config_.eval.dataset.empty();
    add({"policy", facts, asked_.actor, "--actor-ranks", {}, {}}, "policy");
    return {};
  }

  Result<void> add_policy(std::int64_t lanes) {
    TROUPE_TRY_ASSIGN(facts, trained_model(model::HeadKind::kLanguage, lanes));
    // In a synchronous run the weights that an update starts from sampled every token.
    facts.scores = learn::scores_start(session::trainer_settings(config_, 1).algo,
                                       config_.train.staleness_max == 0,
                                       config_.mini_batches() * config_.train.max_epochs);
    facts.average = config_.train.enable_ema;
    facts.publishes = !one_process();
    facts.shares_panels = shares_panels();
    add({"policy", facts, asked_.actor, "--actor-ranks", {}, {}}, "policy");
    return {};
  }

  Result<void> add_critic(std::int64_t lanes) {
    const std::string& own = config_.critic.model_name_or_path;
    const std::string rewards = session::first_reward_model(config_);
    const std::string& from = !own.empty()       ? own
                              : !rewards.empty() ? rewards
                                                 : config_.actor.model_name_or_path;
    plan::TrainerFacts facts;
    TROUPE_TRY_SET(facts.model, models_.get(from, model::HeadKind::kScore));
    facts.trained = facts.model->weights();
    facts.moment_bytes = moment_bytes(config_.critic.optim);
    facts.trained_layers = facts.model->spec().layers;
    facts.panels = learn::OptimSettings{}.panels;
    facts.checkpointing = config_.actor.gradient_checkpointing_enable;
    facts.rows = config_.train.micro_tokens_max;
    facts.lanes = lanes;
    facts.ranks = ranks(asked_.critic);
    facts.scores = true;
    facts.fixed = true;
    add({"critic", facts, asked_.critic, "--critic-ranks", {}, {}}, "critic");
    return {};
  }

  Result<void> add_engines() {
    const std::int64_t count = flags_.engines < 0 ? config_.rollout.generators : flags_.engines;
    if (count == 0) return {};
    const engine::EngineLimits limits = session::engine_limits(config_);
    plan::EngineFacts facts;
    TROUPE_TRY_SET(facts.model,
                   models_.get(config_.actor.model_name_or_path, model::HeadKind::kLanguage));
    facts.panels = session::forward_dtype(config_);
    facts.keys_bytes_max = static_cast<std::int64_t>(limits.kv_cache_gb.bytes);
    facts.sequences = limits.max_num_seqs;
    facts.step_rows = limits.max_num_batched_tokens;
    facts.shares_panels = shares_panels();
    TROUPE_TRY(add_cache(facts));
    if (cluster_.nodes > 1) facts.image = std::get<plan::TrainerFacts>(roles_[0].facts).image();
    add({"generator", facts, count, "--engines", {}, {}}, "generator");
    return {};
  }

  // What the longest samples need of the memory for keys and values.
  Result<void> add_cache(plan::EngineFacts& facts) const {
    const auto prompt = static_cast<std::uint64_t>(config_.data.prompt_max_len);
    const model::ModelSpec& spec = facts.model->spec();
    const auto group =
        session::longest_group(config_, prompt, config_.rollout.n_samples_per_prompt);
    TROUPE_TRY(session::check_cache(config_, spec, group, cluster_.on_host()));
    const engine::CacheFit fit = session::cache_fit_of(config_, spec, group, cluster_.on_host());
    facts.keys_bytes_min = static_cast<std::int64_t>(fit.wanted_bytes());
    facts.at_once = fit.at_once;
    if (config_.eval.dataset.empty() && config_.eval.sets.empty()) return {};
    return session::check_cache(
        config_, spec, session::longest_group(config_, prompt, config_.eval.n_samples_per_prompt),
        cluster_.on_host());
  }

  plan::ScorerFacts scorer(std::shared_ptr<const ModelSizes> model) const {
    plan::ScorerFacts facts;
    facts.model = std::move(model);
    facts.panels = session::forward_dtype(config_);
    facts.rows = config_.train.micro_tokens_max;
    facts.own_process = !one_process();
    return facts;
  }

  Result<void> add_reference() {
    const std::string& own = config_.ref.model_name_or_path;
    TROUPE_TRY_ASSIGN(model, models_.get(own.empty() ? config_.actor.model_name_or_path : own,
                                         model::HeadKind::kLanguage));
    add({"reference", scorer(model), 1, {}, {}, {}}, "reference");
    return {};
  }

  Result<void> add_teachers() {
    for (const session::TeacherPart& part : session::teacher_parts(config_)) {
      if (part.folder.empty()) continue;
      TROUPE_TRY_ASSIGN(model, models_.get(part.folder, model::HeadKind::kLanguage));
      add({part.role, scorer(model), 1, {}, {}, {}}, "teacher");
    }
    return {};
  }

  Result<std::vector<plan::Role>> add_rewards() {
    for (const session::RewardPart& part : session::reward_parts(config_)) {
      if (part.folder.empty()) continue;
      const auto head = part.kind == session::RewardPart::Kind::kProcess
                            ? model::HeadKind::kLanguage
                            : model::HeadKind::kScore;
      TROUPE_TRY_ASSIGN(model, models_.get(part.folder, head));
      plan::ScorerFacts facts = scorer(model);
      facts.panels = kernels::PanelDtype::kF32;  // whatever the policy has
      facts.fixed = true;
      add({part.role, facts, 1, {}, {}, {}}, "reward");
    }
    return std::move(roles_);
  }

  void add(plan::Role role, const std::string& kind) {
    put_on(role, kind);
    roles_.push_back(std::move(role));
  }

  const config::TrainConfig& config_;
  const PlanFlags& flags_;
  const AskedRanks asked_;
  const plan::Cluster& cluster_;
  Models models_;
  std::vector<plan::Role> roles_;
};

plan::BatchFacts prompt_batch(const config::TrainConfig& config) {
  plan::BatchFacts batch;
  const std::int64_t prompts = config.rollout.batch_size;
  batch.steps = std::min(config.mini_batches(), prompts);
  batch.groups = (prompts + batch.steps - 1) / batch.steps;
  batch.samples = config.rollout.n_samples_per_prompt;
  batch.shared_rows = config.data.prompt_max_len;
  // No log-prob is needed after a response's last token.
  batch.sample_rows = std::max<std::int64_t>(config.rollout.max_new_tokens - 1, 1);
  return batch;
}

// A row that is longer than a micro-batch is refused when training starts, so none is counted.
plan::BatchFacts row_batch(const config::TrainConfig& config) {
  plan::BatchFacts batch;
  batch.prompts = false;
  batch.steps = 0;  // the number of rows is not known here
  batch.groups = config.train.batch_size;
  batch.samples = (config.method & config::kPairs) != 0 ? 2 : 1;
  const std::int64_t room =
      std::max<std::int64_t>(config.train.micro_tokens_max / batch.samples, 1);
  batch.sample_rows = std::min(config.data.max_len, room);
  return batch;
}

Result<void> check_names(const config::TrainConfig& config) {
  const auto& devices = config.rollout.device;
  for (auto one = devices.begin(); one != devices.end(); ++one) {
    if (!one->gpu || std::find(devices.begin(), one, *one) == one) continue;
    return fail(ErrorCode::kConfig, "rollout.device names " + one->text() + " twice",
                "name each device once (engines take them in turn)");
  }
  return {};
}

}  // namespace

Result<plan::RunFacts> plan_facts(const config::TrainConfig& config,
                                  const config::Origins& origins,
                                  const PlanFlags& flags) {
  TROUPE_TRY(check_names(config));
  plan::RunFacts facts;
  TROUPE_TRY_SET(facts.cluster, cluster_of(flags, config));
  facts.place = {facts.cluster.on_host(), cli::cores_for(config.train.threads)};
  facts.lanes_set = origins.contains("train.lanes");
  const AskedRanks asked(config, flags);
  const std::int64_t set = config.train.lanes;
  const std::int64_t lanes = facts.lanes_set ? set : asked.actor;
  const std::int64_t critic_lanes = facts.lanes_set ? set : asked.critic;
  TROUPE_TRY_SET(facts.roles, Roles(config, flags, facts.cluster).all(lanes, critic_lanes));
  facts.batch = config.method == config::kPpo ? prompt_batch(config) : row_batch(config);
  facts.batch.passes = config.train.max_epochs;
  facts.batch.rows_max = config.train.micro_tokens_max;
  facts.batch.lanes = lanes;
  facts.batch.ranks = asked.actor;
  return facts;
}

}  // namespace troupe::app
