// The configuration of one training run as plain values, filled from defaults, YAML files and flags
// by ConfigBuilder (config_set.hpp). A member's path is its key: `actor.adam.lr` here is
// `--actor.adam.lr` on the command line and `actor: {adam: {lr: ...}}` in YAML. The initialisers
// below are the defaults; what each key means stands in config_rows.cpp and docs/configuration.md.
// A value type; read-only once training starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::core {

struct TrainConfig {
  struct Adam {
    double lr = 1e-6;
    std::vector<double> betas = {0.9, 0.95};
    double eps = 1e-8;
    double weight_decay = 0.0;
  };

  struct Actor {
    std::string model_name_or_path;
    Adam adam;
    double eps_clip = 0.2;
    std::vector<double> eps_clip_low_high;  // empty: eps_clip on both sides
    double entropy_coef = 0.0;
    double max_norm = 1.0;
    double lr_warmup_ratio = 0.03;
    double min_lr_ratio = 0.1;
  } actor;

  struct Rollout {
    std::int64_t batch_size = 32;  // prompts of one update
    std::int64_t n_samples_per_prompt = 8;
    std::int64_t max_new_tokens = 256;
    double temperature = 1.0;
    double top_p = 1.0;
    std::int64_t top_k = 0;
    double min_p = 0.0;
    std::vector<std::string> stop;
    std::int64_t generators = 1;  // started by the run; nodes that join may bring more
    double straggler_timeout_s = 0;  // 0 = wait for every sample
    std::string kv_on_update = "keep";
  } rollout;

  struct Train {
    std::int64_t batch_size = 0;  // samples of one optimiser step; 0 = the whole update
    std::int64_t max_epochs = 1;
    std::int64_t num_episodes = 1;
    std::int64_t max_steps = 0;  // updates; 0 = what num_episodes gives
    std::int64_t seed = 42;
    std::int64_t micro_tokens_max = 2048;
    std::int64_t threads = 0;  // 0 = all cores this process may use
    std::int64_t staleness_max = 0;
    std::int64_t nonfinite_steps_max = 3;
  } train;

  struct Algo {
    struct Advantage {
      std::string estimator = "group_norm";
    } advantage;
    struct Kl {
      double init_coef = 0.0;
      std::string estimator = "k2";
    } kl;
    std::string objective = "decoupled";
    std::string reducer = "token_mean";
    double correction_max = 2.0;
  } algo;

  struct Data {
    std::string prompt_dataset;
    std::string input_key = "input";
    std::string label_key;
    bool apply_chat_template = false;
    std::string input_template;
    std::int64_t max_samples = 0;  // 0 = all
    std::int64_t prompt_max_len = 1024;
  } data;

  struct Reward {
    std::string rule;  // "" = none
    std::string rule_pattern;
    std::string python;
    std::string http;
    double deadline_s = 30;
    std::vector<double> clip_range = {-10, 10};
  } reward;

  struct Eval {
    std::string dataset;
    std::int64_t steps = 0;  // 0 = at the start and the end only
    std::int64_t n_samples_per_prompt = 4;
    double temperature = 0.6;
  } eval;

  struct Run {
    std::string path = "runs/ppo";
  } run;

  struct Ckpt {
    std::int64_t save_steps = 0;  // 0 = at the end only
    std::int64_t max_num = 3;
  } ckpt;

  std::string resume = "auto";  // "auto", "off" or a checkpoint folder

  struct Cluster {
    std::string transport = "caf";
    std::vector<std::string> local_roles = {"policy", "reference", "reward", "generator"};
    std::string listen = "127.0.0.1:0";
    std::string token_file;
    std::string ca, certificate, key;  // files; all three or none
    std::string status_listen = "127.0.0.1:0";
  } cluster;

  struct Logger {
    bool tensorboard = true;
  } logger;

  struct Log {
    std::string format = "auto";
    bool trace = false;
  } log;

  // Samples of one update.
  std::int64_t samples_per_update() const {
    return rollout.batch_size * rollout.n_samples_per_prompt;
  }
  // Optimiser steps of one pass over an update.
  std::int64_t mini_batches() const {
    return train.batch_size == 0 ? 1 : samples_per_update() / train.batch_size;
  }
};

}  // namespace troupe::core
