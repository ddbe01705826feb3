// The rules between configuration keys.
#include "runtime/config/builder.hpp"
#include "runtime/config/refuse.hpp"
#include "runtime/core/error_list.hpp"
#include "runtime/core/group_bytes.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace troupe::config {
namespace {

// Of one key: why it makes no sense beside others and what to do, or nothing.
struct KeyRule {
  std::string_view key;  // empty where none of several is set
  std::string (*why)(const TrainConfig& c);
};

#define RULE(key, wrong, ...)                                                               \
  {                                                                                         \
    key, [](const TrainConfig& c) { return (wrong) ? joined(__VA_ARGS__) : std::string(); } \
  }

constexpr KeyRule kRun[] = {
    RULE("run.path", c.run.path.empty(), "must name a folder"),
    RULE("resume", c.resume.empty(), "expected auto, off or a checkpoint folder"),
};

bool names_evaluation(std::string_view figure) {
  return figure.starts_with("eval/") || figure.starts_with("-eval/");
}

constexpr KeyRule kData[] = {
    RULE("data.input_template",
         !c.data.input_template.empty() && c.data.apply_chat_template,
         "cannot be combined with data.apply_chat_template"),
    RULE("data.input_template",
         !c.data.input_template.empty() && c.data.input_template.find("{}") == Text::npos,
         "has no {} where the prompt would go"),
    RULE("data.input_key", c.data.input_key.empty(), "must name the column of the prompt"),
    RULE("eval.steps", c.eval.steps > 0 && c.eval.dataset.empty(), "needs --eval.dataset"),
    RULE("ckpt.best_metric_key",
         !c.ckpt.best_metric_key.empty() && !names_evaluation(c.ckpt.best_metric_key),
         "names a figure of an evaluation, as eval/pass@1 or -eval/loss"),
    RULE("ckpt.best_metric_key",
         !c.ckpt.best_metric_key.empty() && c.eval.dataset.empty(),
         "needs --eval.dataset"),
};

// Tensor cores add in an order of their own: the log-probs of policy, reference and engines agree
// only where all of them use these.
bool uses_tensor_cores(const TrainConfig& c) {
  return c.actor.param_dtype == ParamDtype::kBf16Compute;
}

constexpr KeyRule kPolicyDevice[] = {
    RULE("actor.param_dtype",
         uses_tensor_cores(c) && !c.actor.device.gpu,
         "a policy trains with bf16-compute on a GPU only; give bf16, or --actor.device cuda"),
};

constexpr std::string_view kOneArithmetic =
    "with actor.param_dtype bf16-compute policy, reference and engines compute on GPUs; give cuda, "
    "or --actor.param_dtype bf16";

constexpr KeyRule kOtherDevices[] = {
    RULE("ref.device", uses_tensor_cores(c) && !c.ref.device.gpu, kOneArithmetic),
    RULE("rollout.device", uses_tensor_cores(c) && !c.rollout.device.gpu, kOneArithmetic),
};

constexpr KeyRule kBatches[] = {
    RULE("train.batch_size",
         c.train.batch_size > c.samples_per_update(),
         c.train.batch_size,
         " samples, but an update has only ",
         c.samples_per_update(),
         " (rollout.batch_size x n_samples_per_prompt)"),
    RULE("train.batch_size",
         c.train.batch_size > 0 && c.samples_per_update() % c.train.batch_size != 0,
         c.train.batch_size,
         " does not divide the ",
         c.samples_per_update(),
         " samples of an update (rollout.batch_size x n_samples_per_prompt)"),
};

constexpr KeyRule kEngine[] = {
    RULE("rollout.n_samples_per_prompt",
         c.rollout.n_samples_per_prompt > c.rollout.max_num_seqs,
         c.rollout.n_samples_per_prompt,
         " samples of a prompt run together, but rollout.max_num_seqs is ",
         c.rollout.max_num_seqs),
    RULE("eval.n_samples_per_prompt",
         c.eval.n_samples_per_prompt > c.rollout.max_num_seqs,
         c.eval.n_samples_per_prompt,
         " samples of a prompt run together, but rollout.max_num_seqs is ",
         c.rollout.max_num_seqs),
};

// Of rule, Python file and server: how many are set.
std::size_t sources_of(const TrainConfig& c) {
  return !c.reward.rule.empty() + !c.reward.python.empty() + std::size_t{!c.reward.http.empty()};
}
std::size_t rewards_of(const TrainConfig& c) {
  return c.reward.model_name_or_path.size() + (sources_of(c) > 0 ? 1 : 0);
}

constexpr KeyRule kReward[] = {
    RULE("",
         rewards_of(c) == 0,
         "no reward: set --reward.rule, --reward.python, --reward.http or "
         "--reward.model_name_or_path"),
    RULE("reward.weights",
         !c.reward.weights.empty() && c.reward.weights.size() != rewards_of(c),
         c.reward.weights.size(),
         " weights for ",
         rewards_of(c),
         " reward(s)"),
    RULE("reward.python",
         sources_of(c) > 1 && !c.reward.python.empty(),
         c.reward.rule.empty() ? "reward.http" : "reward.rule",
         " is set too; keep one of them"),
    RULE("reward.http", sources_of(c) > 1, "reward.rule is set too; keep one of them"),
    RULE("reward.rule",
         !c.reward.rule.empty() && c.data.label_key.empty(),
         "compares with a label: set --data.label_key"),
    RULE("reward.rule",
         c.reward.rule == "regex" && c.reward.rule_pattern.empty(),
         "regex needs --reward.rule_pattern"),
    RULE("reward.rule_pattern",
         c.reward.rule != "regex" && !c.reward.rule_pattern.empty(),
         "is read only with --reward.rule regex"),
    RULE("reward.clip_range",
         c.reward.clip_range[0] >= c.reward.clip_range[1],
         "the first value must be below the second"),
};

constexpr KeyRule kFilter[] = {
    RULE("algo.dynamic_filtering_range",
         c.algo.dynamic_filtering_range[0] >= c.algo.dynamic_filtering_range[1],
         "the first value must be below the second"),
};

constexpr KeyRule kCluster[] = {
    RULE("cluster.ca",
         c.cluster.ca.empty() != c.cluster.certificate.empty() ||
             c.cluster.ca.empty() != c.cluster.key.empty(),
         "cluster.ca, cluster.certificate and cluster.key go together (troupe ca init)"),
    RULE("cluster.local_roles",
         std::ranges::count(c.cluster.local_roles, "policy") == 0,
         "the policy runs where the run is started"),
    RULE("cluster.listen",
         c.cluster.transport == Transport::kLoopback &&
             c.cluster.listen != TrainConfig{}.cluster.listen,
         "a run in one process has no door; leave it out or use --cluster.transport caf"),
    RULE("rollout.generators",
         c.cluster.transport == Transport::kLoopback && c.rollout.generators < 1,
         "nobody can join a run in one process; give 1 or --cluster.transport caf"),
};

constexpr KeyRule kSupervisedBatch[] = {
    RULE("train.batch_size",
         c.train.batch_size < 1,
         "supervised training needs at least 1 sample a step"),
};

#undef RULE

// Of each part what is wrong first is told.
struct Part {
  Methods methods;
  std::span<const KeyRule> rules;
};

constexpr Part kParts[] = {
    {kAllMethods, kRun},
    {kAllMethods, kData},
    {kAllMethods, kPolicyDevice},
    {kPpo, kBatches},
    {kPpo, kEngine},
    {kPpo, kReward},
    {kPpo, kOtherDevices},
    {kPpo, kFilter},
    {kPpo, kCluster},
    {kSupervised, kSupervisedBatch},
};

class Check {
 public:
  Check(const TrainConfig& config, const Origins& origins) : config_(config), origins_(origins) {}

  void needed(const Table& table) {
    for (const Row& row : table.rows()) {
      if (!row.needed || !row.is_read_by(config_.method) || row.yaml(config_) != "\"\"") continue;
      add(refuse(row.name, " is not set (", row.help, "): give --", row.name,
                 " or put it in the YAML file"));
    }
  }

  void part(std::span<const KeyRule> rules) {
    for (const KeyRule& rule : rules) {
      const std::string why = rule.why(config_);
      if (!why.empty()) return refuse_key(rule.key, why);
    }
  }

  void handed(std::span<const Rule> rules) {
    for (const Rule& rule : rules) {
      if (const auto refusal = rule(config_)) return refuse_key(refusal->key, refusal->why);
    }
  }

  void refuse_key(std::string_view key, std::string_view why) {
    const auto origin = origins_.find(key);  // "demo.yaml:4: " for a key that was set
    add(refuse(origin == origins_.end() ? "" : origin->second + ": ", key, key.empty() ? "" : ": ",
               why));
  }

  core::Result<void> result() const { return wrong_.result(); }

 private:
  void add(const core::Failure& failure) { wrong_.add(failure.error); }

  const TrainConfig& config_;
  const Origins& origins_;
  core::ErrorList wrong_;
};

// One way of a group: `rest` bytes beside its samples, `token` bytes for each token of a sample.
struct Way {
  const char* what;
  std::uint64_t rest, token;
};

bool fits(const TrainConfig& c,
          Check& check,
          const Way& way,
          std::string_view samples_key,
          std::uint64_t samples) {
  const auto tokens = static_cast<std::uint64_t>(c.rollout.max_new_tokens);
  const std::uint64_t left = core::frame_left(way.rest),
                      one = core::kSampleRest_bytes + tokens * way.token;
  if (samples * one <= left) return true;
  if (left < samples * (core::kSampleRest_bytes + way.token)) {
    check.refuse_key(way.rest > 0 ? "data.prompt_max_len" : samples_key,
                     joined("a group of ", samples,
                            " samples does not fit the one frame that it travels in; give less"));
    return false;
  }
  check.refuse_key(
      "rollout.max_new_tokens",
      joined(samples, " samples of ", tokens, " tokens, ", way.what, ", are ", samples * one,
             " bytes (", way.token, " a token), and a group travels in one frame, which has ", left,
             " for them: give at most --rollout.max_new_tokens ",
             (left / samples - core::kSampleRest_bytes) / way.token, " or --", samples_key, " ",
             left / one));
  return false;
}

void check_frames(const TrainConfig& c, Check& check) {
  const bool masses = c.rollout.top_p < 1 || c.rollout.top_k > 0 || c.rollout.min_p > 0;
  const Way delivered{
      "as they are delivered", 0,
      core::delivered_bytes(1, core::kTokenText_bytes, masses) - core::kSampleRest_bytes};
  const Way learned{"as they are learned from",
                    static_cast<std::uint64_t>(c.data.prompt_max_len) * 4,
                    core::experience_bytes(1, c.has_reference()) - core::kSampleRest_bytes};
  const auto samples = static_cast<std::uint64_t>(c.rollout.n_samples_per_prompt);
  for (const Way& way : {delivered, learned}) {
    if (!fits(c, check, way, "rollout.n_samples_per_prompt", samples)) return;
  }
  if (c.eval.dataset.empty()) return;
  fits(c, check, delivered, "eval.n_samples_per_prompt",
       static_cast<std::uint64_t>(c.eval.n_samples_per_prompt));
}

}  // namespace

core::Result<void> check(const TrainConfig& config, const Table& table, const Origins& origins) {
  Check checked(config, origins);
  checked.needed(table);
  for (const Part& part : kParts) {
    if ((part.methods & config.method) != 0) checked.part(part.rules);
  }
  if (config.method == kPpo) {
    checked.handed(table.rules());
    check_frames(config, checked);
  }
  return checked.result();
}

}  // namespace troupe::config
