// The rules between configuration keys.
#include "runtime/core/config_set.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace troupe::core {
namespace {

using Origins = std::map<std::string, std::string, std::less<>>;

// "demo.yaml:4: " for a key that was set, "" for a default.
std::string place(const Origins& origins, std::string_view key) {
  const auto found = origins.find(key);
  return found == origins.end() ? std::string() : found->second + ": ";
}

Failure refuse(const Origins& origins, std::string_view key, const std::string& why) {
  return fail(ErrorCode::kConfig, place(origins, key) + std::string(key) + ": " + why);
}

Result<void> check_needed(const TrainConfig& config) {
  for (const ConfigRow& row : config_table()) {
    if (row.required && config_value_yaml(config, row) == "\"\"") {
      return fail(ErrorCode::kConfig, std::string(row.name) + " is not set (" +
                                          std::string(row.help_text) + "): give --" +
                                          std::string(row.name) + " or put it in the YAML file");
    }
  }
  return {};
}

Result<void> check_batches(const TrainConfig& c, const Origins& origins) {
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

Result<void> check_reward(const TrainConfig& c, const Origins& origins) {
  const bool rule = !c.reward.rule.empty();
  const bool python = !c.reward.python.empty();
  const bool http = !c.reward.http.empty();
  if (!rule && !python && !http) {
    return fail(ErrorCode::kConfig,
                "no reward: set --reward.rule, --reward.python or --reward.http");
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

Result<void> check_data(const TrainConfig& c, const Origins& origins) {
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
  return {};
}

Result<void> check_cluster(const TrainConfig& c, const Origins& origins) {
  const auto& files = c.cluster;
  const int given = !files.ca.empty() + !files.certificate.empty() + !files.key.empty();
  if (given != 0 && given != 3) {
    return refuse(origins, "cluster.ca",
                  "cluster.ca, cluster.certificate and cluster.key go together (troupe ca init)");
  }
  for (const std::string& kind : files.local_roles) {
    if (kind != "policy" && kind != "reference" && kind != "reward" && kind != "generator") {
      return refuse(
          origins, "cluster.local_roles",
          "there is no role '" + kind + "'; expected policy, reference, reward, generator");
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

}  // namespace

Result<void> check_config(const TrainConfig& config, const Origins& origins) {
  TROUPE_TRY(check_needed(config));
  TROUPE_TRY(check_batches(config, origins));
  TROUPE_TRY(check_reward(config, origins));
  TROUPE_TRY(check_data(config, origins));
  if (config.run.path.empty()) return refuse(origins, "run.path", "must name a folder");
  TROUPE_TRY(check_cluster(config, origins));
  if (config.resume.empty()) {
    return refuse(origins, "resume", "expected auto, off or a checkpoint folder");
  }
  return {};
}

}  // namespace troupe::core
