// The configuration of one training run as plain values, filled from defaults, YAML files and flags
// by ConfigBuilder (config_set.hpp). A member's path is its key: `actor.adam.lr` here is
// `--actor.adam.lr` on the command line and `actor: {adam: {lr: ...}}` in YAML. The initialisers
// below are the defaults; what each key means stands in config_rows.cpp and docs/configuration.md.
// A value type; read-only once training starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::config {

struct TrainConfig {
  std::string method = "ppo";  // train_method.hpp

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
    double dual_clip = 0.0;  // 0 = none
    bool gradient_checkpointing_enable = false;
    std::string param_dtype = "f32";  // of weights in forward passes
    std::string device = "cpu";       // device_name.hpp; the same below
    std::vector<std::string> freeze;  // parts of tensor names
    struct Lora {
      std::int64_t rank = 0;  // 0 = all weights are trained
      double alpha = 16;
      std::vector<std::string> target = {"all-linear"};
    } lora;
    double ptx_coef = 0.05;      // read with data.pretrain_dataset
    double aux_loss_coef = 0.0;  // of the load-balancing loss of experts
  } actor;

  struct Critic {
    std::string model_name_or_path;  // empty: the first reward model, else the policy
    Adam adam = {.lr = 9e-6};
    double max_norm = 1.0;
    double lr_warmup_ratio = 0.03;
    double min_lr_ratio = 0.1;
    double value_clip = 0.5;
    std::int64_t freezing_steps = 0;  // updates in which only the critic learns
    bool save_value_network = false;
    std::string device = "cpu";
  } critic;

  struct Ref {
    std::string model_name_or_path;  // empty: the model as it was before training
    std::string device = "cpu";
  } ref;

  struct Rollout {
    std::int64_t batch_size = 32;  // prompts of one update
    std::int64_t n_samples_per_prompt = 8;
    std::int64_t max_new_tokens = 256;
    double temperature = 1.0;
    double top_p = 1.0;
    std::int64_t top_k = 0;
    double min_p = 0.0;
    std::vector<std::string> stop;
    std::int64_t generators = 1;     // started by the run; nodes that join may bring more
    double straggler_timeout_s = 0;  // 0 = wait for every sample
    std::string kv_on_update = "keep";
    std::int64_t max_num_seqs = 256;  // samples that one engine runs at once
    std::int64_t max_num_batched_tokens = 512;
    double kv_cache_gb = 1.0;
    bool enable_prefix_caching = true;
    bool enable_sleep = false;  // an idle engine gives its KV memory back
    std::string device = "cpu";
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
    bool enable_ema = false;
    double ema_beta = 0.992;
  } train;

  struct Algo {
    struct Advantage {
      std::string estimator = "group_norm";
      double gamma = 1.0;
      double lambd = 1.0;
      bool no_std_norm = false;
      double rho_max = 1.0;  // vtrace
      double c_max = 1.0;    // vtrace
    } advantage;
    struct Kl {
      double init_coef = 0.0;
      std::string estimator = "k2";
      bool use_loss = true;
      bool per_sample = false;  // in the reward
      double target = 0.0;      // 0 = the coefficient stays
      double horizon = 10000;
      double stop = 0.0;  // 0 = never
    } kl;
    struct Correction {
      std::string type = "none";
      double low = 0.5;
      double high = 2.0;
    } correction;
    double cispo_max = 5.0;         // upper bound of pi/mu
    double reducer_constant = 0.0;  // 0 = rollout.max_new_tokens
    double dpo_beta = 0.1;          // online_dpo
    bool dynamic_filtering_enable = false;
    std::vector<double> dynamic_filtering_range = {0, 1};
    std::string objective = "decoupled";
    std::string reducer = "token_mean";
    double correction_max = 2.0;
  } algo;

  struct Data {
    std::string dataset;  // sft, pretrain, rm, dpo, ipo, cdpo, kto
    std::vector<double> probs;
    std::string output_key = "output";
    std::string chosen_key = "chosen";
    std::string rejected_key = "rejected";
    std::string prompt_key;
    std::string margin_key;
    bool multiturn = false;
    std::int64_t max_len = 2048;
    bool drop_too_long = false;
    std::string pretrain_dataset;  // ptx
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
    double away_s = 300;
    std::vector<double> clip_range = {-10, 10};
    std::vector<std::string> model_name_or_path;  // learned reward models
    std::string device = "cpu";                   // of these
    std::vector<double> weights;                  // of rule/python/http first, then of the models
    std::string normalize = "none";
    std::string clip_order = "troupe";
    std::int64_t overlong_buffer_len = 0;  // 0 = none
    double overlong_penalty_factor = 1.0;
    double stop_properly_penalty_coef = 1.0;  // 1 = none; below 0: the reward itself
  } reward;

  struct Dpo {
    double beta = 0.1;
    double label_smoothing = 0.0;
    double nll_loss_coef = 0.0;
    bool length_mean = false;
  } dpo;

  struct Kto {
    double beta = 0.1;
    double desirable_weight = 1.0;
    double undesirable_weight = 1.0;
  } kto;

  struct Eval {
    std::string dataset;
    std::int64_t steps = 0;  // 0 = at the start and the end only
    std::int64_t n_samples_per_prompt = 4;
    double temperature = 0.6;
    double pass_score = 0.5;
  } eval;

  struct Run {
    std::string path = "runs/ppo";
  } run;

  struct Ckpt {
    std::int64_t save_steps = 0;  // 0 = at the end only
    std::int64_t max_num = 3;
    std::string best_metric_key;
  } ckpt;

  std::string resume = "auto";  // "auto", "off" or a checkpoint folder

  struct Cluster {
    std::string transport = "caf";
    std::vector<std::string> local_roles = {"policy", "critic", "reference", "reward", "generator"};
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
    std::string names = "ours";
    bool trace = false;
  } log;

  // Whether a frozen reference model is part of the run.
  bool has_reference() const { return algo.kl.init_coef != 0 || algo.objective == "online_dpo"; }
  // Samples of one update.
  std::int64_t samples_per_update() const {
    return rollout.batch_size * rollout.n_samples_per_prompt;
  }
  // Optimiser steps of one pass over an update.
  std::int64_t mini_batches() const {
    return train.batch_size == 0 ? 1 : samples_per_update() / train.batch_size;
  }
};

}  // namespace troupe::config
