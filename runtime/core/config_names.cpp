// Answers to names that are not keys: the nearest key, and the new name of a known old one.
#include "runtime/core/config_table.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::core {
namespace {

// Edits (insert, drop, replace, swap neighbours) that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replace, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string_view leaf(std::string_view name) {
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

struct Renamed {
  std::string_view old_name;
  std::string_view new_name;
};

// OpenRLHF's flat names (up to 0.9), then dotted ones that are another key here.
constexpr Renamed kRenamed[] = {
    {"pretrain", "actor.model_name_or_path"},
    {"actor_learning_rate", "actor.adam.lr"},
    {"learning_rate", "actor.adam.lr"},
    {"adam_betas", "actor.adam.betas"},
    {"l2", "actor.adam.weight_decay"},
    {"eps_clip", "actor.eps_clip"},
    {"eps_clip_low_high", "actor.eps_clip_low_high"},
    {"entropy_loss_coef", "actor.entropy_coef"},
    {"max_norm", "actor.max_norm"},
    {"lr_warmup_ratio", "actor.lr_warmup_ratio"},
    {"min_lr_ratio", "actor.min_lr_ratio"},
    {"rollout_batch_size", "rollout.batch_size"},
    {"n_samples_per_prompt", "rollout.n_samples_per_prompt"},
    {"generate_max_len", "rollout.max_new_tokens"},
    {"temperature", "rollout.temperature"},
    {"top_p", "rollout.top_p"},
    {"train_batch_size", "train.batch_size"},
    {"max_epochs", "train.max_epochs"},
    {"num_episodes", "train.num_episodes"},
    {"seed", "train.seed"},
    {"train_max_tokens_per_gpu", "train.micro_tokens_max"},
    {"micro_train_batch_size", "train.micro_tokens_max"},
    {"async_train", "train.staleness_max"},
    {"async_queue_size", "train.staleness_max"},
    {"advantage_estimator", "algo.advantage.estimator"},
    {"policy_loss_type", "algo.objective"},
    {"vllm_is_truncated_threshold", "algo.correction_max"},
    {"init_kl_coef", "algo.kl.init_coef"},
    {"kl_estimator", "algo.kl.estimator"},
    {"prompt_data", "data.prompt_dataset"},
    {"input_key", "data.input_key"},
    {"label_key", "data.label_key"},
    {"apply_chat_template", "data.apply_chat_template"},
    {"input_template", "data.input_template"},
    {"max_samples", "data.max_samples"},
    {"prompt_max_len", "data.prompt_max_len"},
    {"remote_rm_url", "reward.python"},
    {"reward_clip_range", "reward.clip_range"},
    {"eval_dataset", "eval.dataset"},
    {"eval_steps", "eval.steps"},
    {"eval_n_samples_per_prompt", "eval.n_samples_per_prompt"},
    {"eval_temperature", "eval.temperature"},
    {"ckpt_path", "run.path"},
    {"save_path", "run.path"},
    {"save_steps", "ckpt.save_steps"},
    {"max_ckpt_num", "ckpt.max_num"},
    {"load_checkpoint", "resume"},
    {"use_tensorboard", "logger.tensorboard"},
    {"train.async_enable", "train.staleness_max"},
    {"train.async_queue_size", "train.staleness_max"},
    {"train.max_tokens_per_gpu", "train.micro_tokens_max"},
    {"train.micro_batch_size", "train.micro_tokens_max"},
    {"actor.policy_loss_type", "algo.objective"},
    {"algo.advantage.is_correction_threshold", "algo.correction_max"},
    {"reward.remote_url", "reward.python"},
    {"ckpt.path", "run.path"},
    {"ckpt.output_dir", "run.path"},
    {"ckpt.load_enable", "resume"},
    {"logger.tensorboard_dir", "logger.tensorboard"},
};

}  // namespace

std::string nearest_config_name(std::string_view name) {
  std::string_view best;
  std::size_t best_cost = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const ConfigRow& row : config_table()) {
    std::size_t cost = edit_distance(name, row.name);
    // `lr` or `actor.lr` for `actor.adam.lr`: the last word is right, the path is not.
    if (leaf(name) == leaf(row.name)) {
      const bool same_section = name.substr(0, name.find('.')) == row.section();
      cost = std::min<std::size_t>(cost, same_section ? 1 : 2);
    }
    if (cost < best_cost) {
      best_cost = cost;
      best = row.name;
    }
  }
  return std::string(best);
}

std::string renamed_config_key(std::string_view name) {
  for (const Renamed& entry : kRenamed) {
    if (entry.old_name == name) {
      return "'" + std::string(name) + "' is called '" + std::string(entry.new_name) + "' here";
    }
  }
  return {};
}

}  // namespace troupe::core
