// What the oracle test of runtime/learn drives: one JSON request a line on stdin, one JSON answer a
// line on stdout. An answer is {"ok": ...} or {"error": sentence}. One thread, no state.
//
//   {"op": "advantages", "algo": A, "updates": [[{"scores": [...], "lengths": [...], and by sample
//    "truncated", "values", "behaviour", "scored", "reference"}]]} -> one a update: {"advantages",
//    "returns": [[[...]]], "kl"}; the updates share the reward normaliser
//   {"op": "loss", "algo": A, "tokens": {the columns of learn::TokenBatch, "logprobs", "entropy"}}
//   ->
//    {"loss", "logprobs", "entropy", "weights", "metrics"}
//   {"op": "m2po", "log_rho": [...], "tau": T} -> mask
//   {"op": "optimizer", "optim": O, "params": [...], "grads": [[...]], "lr": [...]} -> [[...]]
//   {"op": "schedule", "optim": O, "total_steps": N} -> [...]
//   {"op": "train", "model": F, "out": F, "algo": A, "optim": O, "batch": B, "total_steps": N,
//    "updates": [[group]]} -> {"metrics": [{...}]}; weights and moments are saved in `out`
#include "runtime/learn/advantage/update_advantages.hpp"
#include "runtime/learn/loss/objective_stats.hpp"
#include "runtime/learn/optim/optimizer.hpp"
#include "runtime/learn/optim/schedule.hpp"
#include "runtime/learn/rl/trainer.hpp"
#include "tests/unit/runtime/learn/loss_gradients.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace {

using nlohmann::json;
namespace core = troupe::core;
namespace experience = troupe::experience;
namespace learn = troupe::learn;
namespace model = troupe::model;
using core::Result;

// The next two leave `value` alone when the key is not there.
template <class Row>
void choose(const json& from, const char* key, learn::Chosen<Row>& value) {
  if (from.contains(key)) value = from.at(key).get<std::string>();
}

template <class Value>
void take(const json& from, const char* key, Value& value) {
  if (from.contains(key)) value = from.at(key).get<Value>();
}

learn::AlgoSettings algo_of(const json& from) {
  learn::AlgoSettings algo;
  choose(from, "advantage", algo.advantage.estimator);
  choose(from, "objective", algo.objective);
  choose(from, "correction", algo.correction.type);
  choose(from, "reducer", algo.reducer);
  choose(from, "kl_estimator", algo.kl.estimator);
  choose(from, "clip_order", algo.shaping.clip_order);
  choose(from, "credit", algo.credit);
  take(from, "gamma", algo.advantage.gamma);
  take(from, "lambda", algo.advantage.lambd);
  take(from, "vtrace_rho_max", algo.advantage.rho_max);
  take(from, "vtrace_c_max", algo.advantage.c_max);
  algo.advantage.no_std_norm = !from.value("whiten_std", true);
  take(from, "compares_steps", algo.compares_steps);
  take(from, "normalise_running", algo.shaping.normalise_running);
  take(from, "overlong_tokens", algo.shaping.overlong_buffer_len);
  take(from, "overlong_factor", algo.shaping.overlong_penalty_factor);
  take(from, "response_tokens_max", algo.shaping.response_tokens_max);
  take(from, "stop_properly_coef", algo.shaping.stop_properly_penalty_coef);
  algo.eps_clip_low_high = {from.value("eps_clip_low", 0.2), from.value("eps_clip_high", 0.2)};
  take(from, "dual_clip", algo.dual_clip);
  take(from, "correction_max", algo.correction_max);
  take(from, "cispo_max", algo.cispo_max);
  take(from, "dpo_beta", algo.dpo_beta);
  take(from, "correction_low", algo.correction.low);
  take(from, "correction_high", algo.correction.high);
  take(from, "kl_coef", algo.kl.init_coef);
  take(from, "kl_in_loss", algo.kl.use_loss);
  take(from, "kl_per_sample", algo.kl.per_sample);
  take(from, "entropy_coef", algo.entropy_coef);
  take(from, "temperature", algo.temperature);
  return algo;
}

learn::OptimSettings optim_of(const json& from) {
  learn::OptimSettings optim;
  optim.adam.lr = from.value("lr", optim.adam.lr);
  optim.adam.betas[0] = from.value("beta1", optim.adam.betas[0]);
  optim.adam.betas[1] = from.value("beta2", optim.adam.betas[1]);
  optim.adam.eps = from.value("eps", optim.adam.eps);
  optim.adam.weight_decay = from.value("weight_decay", optim.adam.weight_decay);
  optim.max_norm = from.value("grad_norm_max", optim.max_norm);
  optim.optim = from.value("kind", std::string("adamw"));
  optim.sgd.momentum = from.value("momentum", optim.sgd.momentum);
  optim.lr_scheduler = from.value("schedule", std::string("cosine"));
  optim.lr_decay_ratio = from.value("lr_decay_ratio", optim.lr_decay_ratio);
  optim.lr_cycles = from.value("lr_cycles", optim.lr_cycles);
  optim.lr_warmup_ratio = from.value("warmup_ratio", optim.lr_warmup_ratio);
  optim.min_lr_ratio = from.value("lr_min_ratio", optim.min_lr_ratio);
  return optim;
}

experience::Group group_of(const json& from) {
  experience::Group group;
  group.ticket = {from.value("update", 0u), from.value("slot", 0u), 0};
  group.prompt = from.value("prompt", std::vector<std::int32_t>{});
  for (const json& item : from.at("samples")) {
    experience::Trajectory sample;
    sample.tokens = item.at("tokens").get<std::vector<std::int32_t>>();
    sample.score = item.at("score").get<double>();
    sample.behaviour = item.value("behaviour", std::vector<float>{});
    const std::vector<core::Version> none(sample.tokens.size(), 0);
    sample.versions =
        experience::VersionRuns(std::span<const core::Version>(item.value("versions", none)));
    sample.reference = item.value("reference", std::vector<float>{});
    for (const json& turn : item.value("turns", json::array()))
      sample.turns.push_back(
          {turn[0].get<std::uint32_t>(), turn[1].get<std::vector<std::int32_t>>()});
    for (const json& step : item.value("steps", json::array()))
      sample.steps.push_back({step[0].get<std::uint32_t>(), step[1].get<double>()});
    sample.episode = item.value("episode", 0u);
    if (item.contains("shares")) {
      const json& shares = item["shares"];
      sample.shares =
          experience::Shares{shares[0].get<std::uint32_t>(), shares[1].get<std::uint32_t>()};
    }
    group.samples.push_back(std::move(sample));
  }
  return group;
}

// Groups of {scores, lengths} and, by sample, {truncated, values, behaviour, scored, reference};
// several updates in a row share the normaliser.
Result<json> advantages(const json& request) {
  learn::RunningMoments moments;
  const auto algo = algo_of(request.at("algo"));
  json answers = json::array();
  for (const json& update : request.at("updates")) {
    std::vector<experience::Group> groups;
    learn::TokenTable<float> scored;
    for (const json& item : update) {
      experience::Group group;
      group.ticket.slot = static_cast<std::uint32_t>(groups.size());
      for (std::size_t i = 0; i < item.at("scores").size(); ++i) {
        experience::Trajectory sample;
        sample.score = item.at("scores")[i].get<double>();
        sample.tokens.resize(item.at("lengths")[i].get<std::size_t>());
        if (item.contains("truncated") && item["truncated"][i].get<bool>()) {
          sample.finish = experience::FinishReason::kLength;
        }
        const auto row = [&](const char* key) {
          return item.contains(key) ? item[key][i].get<std::vector<float>>() : std::vector<float>{};
        };
        sample.values = row("values");
        sample.reference = row("reference");
        sample.behaviour = row("behaviour");
        group.samples.push_back(std::move(sample));
      }
      if (item.contains("scored")) {
        scored.push_back(item["scored"].get<std::vector<std::vector<float>>>());
      }
      groups.push_back(std::move(group));
    }
    TROUPE_TRY_ASSIGN(found, learn::update_advantages(algo, groups, scored, moments));
    answers.push_back(
        {{"advantages", found.tokens}, {"returns", found.returns}, {"kl", found.kl_of_sample}});
  }
  return answers;
}

Result<json> loss(const json& request) {
  const json& tokens = request.at("tokens");
  const auto column = [&](const char* name) { return tokens.value(name, std::vector<double>{}); };
  learn::TokenBatch batch;
  batch.advantage = column("advantage");
  batch.weight = column("weight");
  batch.behaviour = column("behaviour");
  batch.anchor = column("anchor");
  batch.reference = column("reference");
  batch.anchor_share = column("anchor_share");
  batch.keep = column("keep");
  batch.pair_weight = tokens.value("pair_weight", 0.0);
  batch.sample_ends = tokens.value("sample_ends", std::vector<std::size_t>{});
  const auto algo = algo_of(request.at("algo"));
  const auto logprobs = column("logprobs"), entropy = column("entropy");
  const auto result = learn::loss_and_gradient(algo, batch, logprobs, entropy);
  json metrics;
  for (const auto& [name, value] : learn::observe(algo, batch, logprobs, entropy).metrics()) {
    metrics[name] = value;
  }
  return json{{"loss", result.loss},
              {"logprobs", result.logprobs},
              {"entropy", result.entropy},
              {"weights", learn::off_policy(algo, batch, logprobs).weight},
              {"metrics", metrics}};
}

Result<json> m2po(const json& request) {
  return json(learn::second_moment_mask(request.at("log_rho").get<std::vector<double>>(),
                                        request.at("tau").get<double>()));
}

// A model whose only use is a flat buffer with room for the values.
model::ModelSpec buffer_spec() {
  model::ModelSpec spec;
  spec.architecture = "LlamaForCausalLM";
  spec.layers = 1;
  spec.hidden = spec.ffn = 32;
  spec.heads = spec.kv_heads = 2;
  spec.head_dim = 16;
  spec.vocab = 64;
  spec.context = 16;
  spec.tied = true;
  return spec;
}

Result<json> optimizer_steps(const json& request) {
  const auto spec = buffer_spec();
  core::SerialTeam team;
  model::ParamStore params(spec), grads(spec);
  learn::StoreOptimizer optimiser(params, params.layout(), optim_of(request.at("optim")));
  const auto start = request.at("params").get<std::vector<float>>();
  std::copy(start.begin(), start.end(), params.data());
  json history = json::array();
  for (std::size_t step = 0; step < request.at("grads").size(); ++step) {
    const auto grad = request.at("grads")[step].get<std::vector<float>>();
    std::copy(grad.begin(), grad.end(), grads.data());
    optimiser.step(team, params, grads, request.at("lr")[step].get<double>(), 1.0);
    history.push_back(std::vector<float>(params.data(), params.data() + start.size()));
  }
  return history;
}

Result<json> schedule(const json& request) {
  const auto total = request.at("total_steps").get<std::int64_t>();
  const auto optim = optim_of(request.at("optim"));
  json result = json::array();
  for (std::int64_t step = 0; step < total; ++step)
    result.push_back(learn::learning_rate(optim, total, step));
  return result;
}

Result<json> train(const json& request) {
  TROUPE_TRY_ASSIGN(params, model::load_model(request.at("model").get<std::string>()));
  learn::TrainerSettings settings;
  settings.algo = algo_of(request.at("algo"));
  settings.optim = optim_of(request.at("optim"));
  settings.total_steps = request.value("total_steps", 0);
  const json batch = request.value("batch", json::object());
  settings.batch.micro_tokens_max = batch.value("micro_tokens_max", std::int64_t{4096});
  settings.batch.mini_batches = batch.value("mini_batches", std::int64_t{1});
  settings.batch.max_epochs = batch.value("epochs", std::int64_t{1});
  core::SerialTeam team;
  TROUPE_TRY_ASSIGN(trainer, learn::PolicyTrainer::create(std::move(params), settings, team));
  json metrics = json::array();
  for (const json& update : request.at("updates")) {
    std::vector<experience::Group> groups;
    for (const json& item : update)
      groups.push_back(group_of(item));
    TROUPE_TRY_ASSIGN(report, trainer->update(groups));
    json row;
    for (const auto& [name, value] : report.metrics)
      row[name] = value;
    row["micro_batches"] = report.micro_batches;
    metrics.push_back(row);
  }
  const std::filesystem::path out = request.at("out").get<std::string>();
  std::filesystem::create_directories(out);
  TROUPE_TRY(trainer->save_state(out));
  return json{{"metrics", metrics}};
}

Result<json> answer(const json& request) {
  const auto op = request.at("op").get<std::string>();
  if (op == "advantages") return advantages(request);
  if (op == "loss") return loss(request);
  if (op == "m2po") return m2po(request);
  if (op == "optimizer") return optimizer_steps(request);
  if (op == "schedule") return schedule(request);
  if (op == "train") return train(request);
  return core::fail(core::ErrorCode::kInvalidArgument, "unknown op " + op);
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto result = answer(json::parse(line));
    const json out = result ? json{{"ok", *result}} : json{{"error", result.error().message}};
    std::cout << out.dump() << std::endl;
  }
  return 0;
}
