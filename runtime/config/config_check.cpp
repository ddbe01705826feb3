// The rules between configuration keys.
#include "runtime/config/config_set.hpp"
#include "runtime/core/device_name.hpp"
#include "runtime/core/edit_distance.hpp"
#include "runtime/core/error_list.hpp"
#include "runtime/core/group_bytes.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace troupe::config {
namespace {

using Origins = std::map<std::string, std::string, std::less<>>;

// "demo.yaml:4: " for a key that was set, "" for a default.
std::string place(const Origins& origins, std::string_view key) {
  const auto found = origins.find(key);
  return found == origins.end() ? std::string() : found->second + ": ";
}

core::Failure refuse(const Origins& origins, std::string_view key, const std::string& why) {
  return core::fail(core::ErrorCode::kConfig, place(origins, key) + std::string(key) + ": " + why);
}

core::Result<void> check_needed(const TrainConfig& config) {
  core::ErrorList missing;
  for (const ConfigRow& row : config_table()) {
    if (row.required && (row.methods & method_bit(config.method)) != 0 &&
        config_value_yaml(config, row) == "\"\"") {
      missing.add(core::ErrorCode::kConfig, std::string(row.name) + " is not set (" +
                                          std::string(row.help_text) + "): give --" +
                                          std::string(row.name) + " or put it in the YAML file");
    }
  }
  return missing.result();
}

core::Result<void> check_run(const TrainConfig& c, const Origins& origins) {
  if (c.run.path.empty()) return refuse(origins, "run.path", "must name a folder");
  if (!c.resume.empty()) return {};
  return refuse(origins, "resume", "expected auto, off or a checkpoint folder");
}

core::Result<void> check_batches(const TrainConfig& c, const Origins& origins) {
  const auto samples = c.samples_per_update();
  if (c.train.batch_size > samples) {
    return refuse(origins, "train.batch_size",
                  std::to_string(c.train.batch_size) + " samples, but an update has only " +
                      std::to_string(samples) + " (rollout.batch_size x n_samples_per_prompt)");
  }
  if (c.train.batch_size > 0 && samples % c.train.batch_size != 0) {
    return refuse(origins, "train.batch_size",
                  std::to_string(c.train.batch_size) + " does not divide the " +
                      std::to_string(samples) +
                      " samples of an update (rollout.batch_size x n_samples_per_prompt)");
  }
  return {};
}

core::Result<void> check_engine(const TrainConfig& c, const Origins& origins) {
  const auto refuse_samples = [&](std::string_view key, std::int64_t samples) {
    return refuse(origins, key,
                  std::to_string(samples) + " samples of a prompt run together, but " +
                      "rollout.max_num_seqs is " + std::to_string(c.rollout.max_num_seqs));
  };
  if (c.rollout.n_samples_per_prompt > c.rollout.max_num_seqs) {
    return refuse_samples("rollout.n_samples_per_prompt", c.rollout.n_samples_per_prompt);
  }
  if (c.eval.n_samples_per_prompt > c.rollout.max_num_seqs) {
    return refuse_samples("eval.n_samples_per_prompt", c.eval.n_samples_per_prompt);
  }
  return {};
}

core::Result<void> check_reward(const TrainConfig& c, const Origins& origins) {
  const bool rule = !c.reward.rule.empty();
  const bool python = !c.reward.python.empty();
  const bool http = !c.reward.http.empty();
  const auto models = c.reward.model_name_or_path.size();
  if (!rule && !python && !http && models == 0) {
    return core::fail(core::ErrorCode::kConfig,
                "no reward: set --reward.rule, --reward.python, --reward.http or "
                "--reward.model_name_or_path");
  }
  const std::size_t rewards = models + (rule || python || http ? 1 : 0);
  if (!c.reward.weights.empty() && c.reward.weights.size() != rewards) {
    return refuse(origins, "reward.weights",
                  std::to_string(c.reward.weights.size()) + " weights for " +
                      std::to_string(rewards) + " reward(s)");
  }
  if (rule + python + http > 1) {
    return refuse(
        origins, python ? "reward.python" : "reward.http",
        std::string(rule ? "reward.rule" : "reward.http") + " is set too; keep one of them");
  }
  if (rule && c.data.label_key.empty()) {
    return refuse(origins, "reward.rule", "compares with a label: set --data.label_key");
  }
  if (c.reward.rule == "regex" && c.reward.rule_pattern.empty()) {
    return refuse(origins, "reward.rule", "regex needs --reward.rule_pattern");
  }
  if (c.reward.rule != "regex" && !c.reward.rule_pattern.empty()) {
    return refuse(origins, "reward.rule_pattern", "is read only with --reward.rule regex");
  }
  if (c.reward.clip_range[0] >= c.reward.clip_range[1]) {
    return refuse(origins, "reward.clip_range", "the first value must be below the second");
  }
  return {};
}

core::Result<void> check_data(const TrainConfig& c, const Origins& origins) {
  if (!c.data.input_template.empty()) {
    if (c.data.apply_chat_template) {
      return refuse(origins, "data.input_template",
                    "cannot be combined with data.apply_chat_template");
    }
    if (c.data.input_template.find("{}") == std::string::npos) {
      return refuse(origins, "data.input_template", "has no {} where the prompt would go");
    }
  }
  if (c.data.input_key.empty()) {
    return refuse(origins, "data.input_key", "must name the column of the prompt");
  }
  if (c.eval.steps > 0 && c.eval.dataset.empty()) {
    return refuse(origins, "eval.steps", "needs --eval.dataset");
  }
  if (!c.ckpt.best_metric_key.empty()) {
    const std::string& key = c.ckpt.best_metric_key;
    if (!key.starts_with("eval/") && !key.starts_with("-eval/")) {
      return refuse(origins, "ckpt.best_metric_key",
                    "names a figure of an evaluation, as eval/pass@1 or -eval/loss");
    }
    if (c.eval.dataset.empty()) {
      return refuse(origins, "ckpt.best_metric_key", "needs --eval.dataset");
    }
  }
  return {};
}

core::Result<void> check_cluster(const TrainConfig& c, const Origins& origins) {
  const auto& files = c.cluster;
  const int given = !files.ca.empty() + !files.certificate.empty() + !files.key.empty();
  if (given != 0 && given != 3) {
    return refuse(origins, "cluster.ca",
                  "cluster.ca, cluster.certificate and cluster.key go together (troupe ca init)");
  }
  for (const std::string& kind : files.local_roles) {
    constexpr std::string_view kKinds[] = {"policy", "critic", "reference", "reward", "generator"};
    if (std::find(std::begin(kKinds), std::end(kKinds), kind) == std::end(kKinds)) {
      const std::string near(core::nearest_word(kind, kKinds));
      return refuse(origins, "cluster.local_roles",
                    "there is no role '" + kind +
                        "', only policy, critic, reference, reward, generator" +
                        (near.empty() ? "" : "; did you mean '" + near + "'?"));
    }
  }
  if (std::find(files.local_roles.begin(), files.local_roles.end(), "policy") ==
      files.local_roles.end()) {
    return refuse(origins, "cluster.local_roles", "the policy runs where the run is started");
  }
  if (c.cluster.transport == "loopback" && origins.contains("cluster.listen")) {
    return refuse(origins, "cluster.listen",
                  "a run in one process has no door; leave it out or use --cluster.transport caf");
  }
  if (c.cluster.transport == "loopback" && c.rollout.generators < 1) {
    return refuse(origins, "rollout.generators",
                  "nobody can join a run in one process; give 1 or --cluster.transport caf");
  }
  return {};
}

core::Result<void> check_devices(const TrainConfig& c, const Origins& origins) {
  const std::pair<std::string_view, const std::string&> named[] = {
      {"actor.device", c.actor.device},
      {"critic.device", c.critic.device},
      {"ref.device", c.ref.device},
      {"rollout.device", c.rollout.device},
      {"reward.device", c.reward.device}};
  for (const auto& [key, device] : named) {
    const auto parsed = core::parse_device(device);
    if (!parsed) return refuse(origins, key, parsed.error().message);
  }
  if (c.actor.param_dtype == "bf16-compute" && !core::parse_device(c.actor.device)->gpu) {
    return refuse(origins, "actor.param_dtype",
                  "a policy trains with bf16-compute on a GPU only; give bf16, or --actor.device "
                  "cuda");
  }
  return {};
}

// Tensor cores add in an order of their own: the log-probs of policy, reference and engines agree
// only where all of them use these.
core::Result<void> check_one_arithmetic(const TrainConfig& c, const Origins& origins) {
  if (c.actor.param_dtype != "bf16-compute") return {};
  const std::pair<std::string_view, const std::string&> others[] = {
      {"ref.device", c.ref.device}, {"rollout.device", c.rollout.device}};
  for (const auto& [key, device] : others) {
    if (core::parse_device(device)->gpu) continue;
    return refuse(origins, key,
                  "with actor.param_dtype bf16-compute policy, reference and engines compute on "
                  "GPUs; give cuda, or --actor.param_dtype bf16");
  }
  return {};
}

// Rules of reinforcement learning.
core::Result<void> check_algo(const TrainConfig& c, const Origins& origins) {
  const std::string& estimator = c.algo.advantage.estimator;
  const bool group = estimator != "gae" && estimator != "vtrace" && estimator != "reinforce";
  if (group && c.rollout.n_samples_per_prompt < 2) {
    return refuse(origins, "rollout.n_samples_per_prompt",
                  "algo.advantage.estimator " + estimator +
                      " compares the samples of a prompt: give at least 2");
  }
  if (group && c.algo.advantage.gamma != 1) {
    return refuse(origins, "algo.advantage.gamma", estimator + " has one reward a sample: give 1");
  }
  if (c.algo.kl.init_coef != 0 && c.algo.kl.use_loss && c.algo.kl.estimator == "k1") {
    return refuse(origins, "algo.kl.estimator",
                  "k1 has no expected gradient in the loss: give k2 or k3, or "
                  "--algo.kl.use_loss false");
  }
  if (c.algo.kl.target > 0 && c.algo.kl.init_coef == 0) {
    return refuse(origins, "algo.kl.target", "steers algo.kl.init_coef, which is 0");
  }
  if (c.algo.objective == "online_dpo" && c.rollout.n_samples_per_prompt < 2) {
    return refuse(origins, "algo.objective", "online_dpo compares the samples of a prompt");
  }
  if (c.algo.objective == "online_dpo" && !group) {
    return refuse(origins, "algo.advantage.estimator",
                  estimator + " compares no samples, which online_dpo does: give rloo or dr_grpo");
  }
  if (c.algo.objective == "gspo" && (!group || c.algo.reducer != "sample_mean")) {
    return refuse(origins, "algo.objective",
                  "gspo has one advantage a sample and a mean over samples: give "
                  "--algo.reducer sample_mean and an estimator that compares samples");
  }
  if (c.algo.kl.per_sample && c.algo.kl.use_loss) {
    return refuse(origins, "algo.kl.per_sample", "is of the reward: give --algo.kl.use_loss false");
  }
  if (c.algo.objective == "gspo" && c.algo.kl.init_coef != 0 && !c.algo.kl.use_loss &&
      !c.algo.kl.per_sample) {
    return refuse(origins, "algo.kl.use_loss",
                  "gspo has one advantage a sample: give --algo.kl.per_sample true too");
  }
  if (c.algo.correction.type != "none" && c.algo.objective == "online_dpo") {
    return refuse(origins, "algo.correction.type", "has nothing to weigh in online_dpo");
  }
  const std::string& objective = c.algo.objective;
  const std::string& correction = c.algo.correction.type;
  const bool own_ratio = objective == "decoupled" || objective == "a3po" || objective == "bypass" ||
                         objective == "cispo" || objective == "topr";
  if (own_ratio && (correction == "tis" || correction == "seq_tis" || correction == "mis" ||
                    correction == "icepop")) {
    return refuse(
        origins, "algo.correction.type",
        objective + " weighs tokens of older policies itself; " + correction +
            " would do it twice: give --algo.objective ppo, or one of geo_rs, m2po, opsm");
  }
  if (c.actor.dual_clip != 0 && c.actor.dual_clip <= 1) {
    return refuse(origins, "actor.dual_clip", "must be above 1, or 0 for none");
  }
  if (c.algo.dynamic_filtering_range[0] >= c.algo.dynamic_filtering_range[1]) {
    return refuse(origins, "algo.dynamic_filtering_range",
                  "the first value must be below the second");
  }
  if (c.algo.correction.low >= c.algo.correction.high &&
      (c.algo.correction.type == "icepop" || c.algo.correction.type == "geo_rs")) {
    return refuse(origins, "algo.correction.low", "must be below algo.correction.high");
  }
  return {};
}

// One way of a group: `rest` bytes beside its samples, `token` bytes for each token of a sample.
struct Way {
  const char* what;
  std::uint64_t rest, token;
};

core::Result<void> check_way(const TrainConfig& c,
                       const Origins& origins,
                       const Way& way,
                       std::string_view samples_key,
                       std::uint64_t samples) {
  const auto tokens = static_cast<std::uint64_t>(c.rollout.max_new_tokens);
  const std::uint64_t left = core::frame_left(way.rest), one = core::kSampleRest_bytes + tokens * way.token;
  if (samples * one <= left) return {};
  if (left < samples * (core::kSampleRest_bytes + way.token)) {
    return refuse(origins, way.rest > 0 ? "data.prompt_max_len" : samples_key,
                  "a group of " + std::to_string(samples) +
                      " samples does not fit the one frame that it travels in; give less");
  }
  return refuse(origins, "rollout.max_new_tokens",
                std::to_string(samples) + " samples of " + std::to_string(tokens) + " tokens, " +
                    way.what + ", are " + std::to_string(samples * one) + " bytes (" +
                    std::to_string(way.token) + " a token), and a group travels in one frame, " +
                    "which has " + std::to_string(left) +
                    " for them: give at most --rollout.max_new_tokens " +
                    std::to_string((left / samples - core::kSampleRest_bytes) / way.token) + " or --" +
                    std::string(samples_key) + " " + std::to_string(left / one));
}

core::Result<void> check_frames(const TrainConfig& c, const Origins& origins) {
  const bool masses = c.rollout.top_p < 1 || c.rollout.top_k > 0 || c.rollout.min_p > 0;
  const Way delivered{"as they are delivered", 0,
                      core::delivered_bytes(1, core::kTokenText_bytes, masses) - core::kSampleRest_bytes};
  const Way learned{"as they are learned from",
                    static_cast<std::uint64_t>(c.data.prompt_max_len) * 4,
                    core::experience_bytes(1, c.has_reference()) - core::kSampleRest_bytes};
  const auto samples = static_cast<std::uint64_t>(c.rollout.n_samples_per_prompt);
  for (const Way& way : {delivered, learned}) {
    TROUPE_TRY(check_way(c, origins, way, "rollout.n_samples_per_prompt", samples));
  }
  if (c.eval.dataset.empty()) return {};
  return check_way(c, origins, delivered, "eval.n_samples_per_prompt",
                   static_cast<std::uint64_t>(c.eval.n_samples_per_prompt));
}

core::Result<void> check_supervised(const TrainConfig& c, const Origins& origins) {
  if (c.train.batch_size < 1) {
    return refuse(origins, "train.batch_size",
                  "supervised training needs at least 1 sample a step");
  }
  return {};
}

}  // namespace

core::Result<void> check_config(const TrainConfig& config, const Origins& origins) {
  core::ErrorList wrong;
  wrong.take(check_needed(config));
  wrong.take(check_run(config, origins));
  wrong.take(check_data(config, origins));
  const core::Result<void> devices = check_devices(config, origins);
  wrong.take(devices);
  if (config.method == "ppo") {
    wrong.take(check_batches(config, origins));
    wrong.take(check_engine(config, origins));
    wrong.take(check_frames(config, origins));
    wrong.take(check_reward(config, origins));
    if (devices) wrong.take(check_one_arithmetic(config, origins));
    wrong.take(check_algo(config, origins));
    wrong.take(check_cluster(config, origins));
  } else {
    wrong.take(check_supervised(config, origins));
  }
  return wrong.result();
}

}  // namespace troupe::config
