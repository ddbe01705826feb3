// What the oracle tests of runtime/engine drive: one JSON request a line on stdin, one JSON answer
// a line on stdout, {"ok": ...} or {"error": sentence, "code": name}. One owner thread; the
// engine's team has the size that "load" names.
//
//   {"op": "random_model", "folder": F, "config": {...}, "seed": S, "std": D} -> {}
//   {"op": "load", "folder": F, "threads": N, "eos": [...], "sequences_max": N,
//    "step_tokens_max": N, "kv_blocks": N} -> {"version"}
//   {"op": "generate", "requests": [{"id", "prompt": [...], "samples", "seed", "sampling": {...}}]}
//       -> {"samples": [{"group", "index", "tokens", "logprobs", "raw_logprobs",
//       "entropies", "top_logprobs": [[id, logprob], ...], "versions", "finish"}]}
//   {"op": "changed", "logits": [...], "sampling": {...}, "prompt": [...], "response": [...]}
//       -> {"scores": [...]}: the scaled scores that a draw would see
//   {"op": "kept", "logits": [...], "sampling": {...}} -> {"ids": [...], "mass": M}
#include "runtime/async/cpu_pool.hpp"
#include "runtime/engine/driver.hpp"
#include "runtime/engine/sampler.hpp"
#include "runtime/model/forward.hpp"
#include "runtime/model/params.hpp"

#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace {

using nlohmann::json;
using troupe::core::Result;
namespace core = troupe::core;
namespace engine = troupe::engine;
namespace kernels = troupe::kernels;
namespace model = troupe::model;

// The team outlives the engine that runs on it.
struct Loaded {
  std::unique_ptr<troupe::async::CpuPool> team;
  std::unique_ptr<engine::EngineDriver> driver;
};

engine::SamplingParams sampling_of(const json& j) {
  engine::SamplingParams p;
  p.temperature = j.value("temperature", p.temperature);
  p.top_k = j.value("top_k", p.top_k);
  p.top_p = j.value("top_p", p.top_p);
  p.min_p = j.value("min_p", p.min_p);
  p.max_new_tokens = j.value("max_new_tokens", p.max_new_tokens);
  p.min_new_tokens = j.value("min_new_tokens", p.min_new_tokens);
  p.ignore_eos = j.value("ignore_eos", p.ignore_eos);
  p.stop_tokens = j.value("stop_tokens", p.stop_tokens);
  p.repetition_penalty = j.value("repetition_penalty", p.repetition_penalty);
  p.presence_penalty = j.value("presence_penalty", p.presence_penalty);
  p.frequency_penalty = j.value("frequency_penalty", p.frequency_penalty);
  for (const json& entry : j.value("logit_bias", json::array()))
    p.logit_bias.push_back({entry.at(0), entry.at(1)});
  p.entropies = j.value("entropies", p.entropies);
  p.raw_logprobs = j.value("raw_logprobs", p.raw_logprobs);
  p.top_logprobs = j.value("top_logprobs", p.top_logprobs);
  return p;
}

Result<json> random_model(const json& request) {
  TROUPE_TRY_ASSIGN(spec, model::parse_spec(request.at("config").dump(), "config"));
  model::ParamStore params(spec);
  model::randomise(params, request.value("seed", std::uint64_t{1}), request.at("std").get<float>());
  TROUPE_TRY(model::save_model(params, request.at("folder").get<std::string>(),
                               model::StorageDtype::kF32, {}));
  return json::object();
}

Result<json> load(const json& request, Loaded& loaded) {
  TROUPE_TRY_ASSIGN(params, model::load_model(request.at("folder").get<std::string>()));
  loaded.driver.reset();
  loaded.team = std::make_unique<troupe::async::CpuPool>(request.value("threads", 1),
                                                         kernels::flush_denormals);
  auto weights = std::make_shared<model::PackedWeights>(params->spec());
  loaded.team->run([&](core::Team team) { weights->fill(team, *params, 0); });
  engine::EngineLimits limits;
  limits.max_num_seqs = request.value("sequences_max", limits.max_num_seqs);
  limits.max_num_batched_tokens = request.value("step_tokens_max", limits.max_num_batched_tokens);
  limits.kv_blocks = request.value("kv_blocks", limits.kv_blocks);
  const auto eos = request.value("eos", std::vector<std::int32_t>{});
  TROUPE_TRY_ASSIGN(made, engine::Engine::create(weights, limits, eos, nullptr, *loaded.team));
  loaded.driver = std::make_unique<engine::EngineDriver>(std::move(made), *loaded.team);
  return json{{"version", weights->version()}};
}

json to_json(const engine::Sample& sample) {
  json top = json::array();
  for (const engine::TokenLogprob& entry : sample.top_logprobs)
    top.push_back({entry.token, entry.logprob});
  return {{"group", sample.group.value},
          {"index", sample.index},
          {"tokens", sample.tokens},
          {"logprobs", sample.logprobs},
          {"raw_logprobs", sample.raw_logprobs},
          {"entropies", sample.entropies},
          {"top_logprobs", std::move(top)},
          {"versions", sample.versions},
          {"finish", std::string(engine::finish_name(sample.finish))}};
}

Result<json> generate(const json& request, Loaded& loaded) {
  if (loaded.driver == nullptr) return core::fail(core::ErrorCode::kNotFound, "load a model first");
  for (const json& group : request.at("requests")) {
    engine::GroupRequest one;
    one.id.value = group.at("id");
    one.prompt = group.at("prompt").get<std::vector<std::int32_t>>();
    one.samples = group.value("samples", 1);
    one.seed = group.value("seed", std::uint64_t{0});
    one.sampling = sampling_of(group.value("sampling", json::object()));
    TROUPE_TRY(loaded.driver->submit(std::move(one)));
  }
  json samples = json::array();
  TROUPE_TRY_ASSIGN(finished, loaded.driver->run());
  for (const engine::Sample& sample : finished)
    samples.push_back(to_json(sample));
  return json{{"samples", std::move(samples)}};
}

Result<json> kept(const json& request) {
  const auto logits = request.at("logits").get<std::vector<float>>();
  const engine::SamplingParams params = sampling_of(request.at("sampling"));
  const auto vocab = static_cast<std::int64_t>(logits.size());
  const std::int64_t blocks = (vocab + kernels::kVocabBlock - 1) / kernels::kVocabBlock;
  std::vector<float> max(static_cast<std::size_t>(blocks)), sum(max);
  engine::HeadRow head{logits.data(), max.data(), sum.data(), engine::inv_temperature(params),
                       0.0f};
  kernels::ops().vocab_sums({.logits = logits.data(),
                             .ld = vocab,
                             .vocab = vocab,
                             .inv_temperature = &head.inv_temperature,
                             .block_max = max.data(),
                             .block_sum = sum.data()},
                            {0, 1}, {0, blocks});
  engine::VocabRow row(vocab, kernels::ops());
  row.load(head, {});
  engine::KeptSet set(vocab);
  set.find(row, params);
  json ids = json::array();
  for (const engine::Candidate& token : set.tokens())
    ids.push_back(token.id);
  const double mass = static_cast<double>(set.mass()) / kernels::kMassUnits;
  return json{{"ids", std::move(ids)}, {"mass", mass / row.mass()}};
}

Result<json> changed(const json& request) {
  const auto logits = request.at("logits").get<std::vector<float>>();
  const engine::SamplingParams params = sampling_of(request.at("sampling"));
  std::set<std::int32_t> prompt;
  for (const json& token : request.at("prompt"))
    prompt.insert(token.get<std::int32_t>());
  const std::vector<std::int32_t> distinct(prompt.begin(), prompt.end());
  engine::TokenCounts counts;
  for (const json& token : request.at("response"))
    counts.add(token.get<std::int32_t>());
  engine::LogitChanges changes(static_cast<std::int64_t>(logits.size()));
  const float scale = engine::inv_temperature(params);
  std::vector<float> scores;
  for (const float z : logits)
    scores.push_back(z * scale);
  for (const engine::ChangedScore& entry :
       changes.find(logits.data(), scale, params, {{}, distinct, counts.entries()})) {
    scores[static_cast<std::size_t>(entry.token)] = entry.score;
  }
  return json{{"scores", std::move(scores)}};
}

Result<json> answer(const json& request, Loaded& loaded) {
  const auto op = request.at("op").get<std::string>();
  if (op == "random_model") return random_model(request);
  if (op == "load") return load(request, loaded);
  if (op == "generate") return generate(request, loaded);
  if (op == "kept") return kept(request);
  if (op == "changed") return changed(request);
  return core::fail(core::ErrorCode::kInvalidArgument, "no such op: " + op);
}

}  // namespace

int main() {
  Loaded loaded;
  for (std::string line; std::getline(std::cin, line);) {
    json reply;
    try {
      const Result<json> result = answer(json::parse(line), loaded);
      if (result) {
        reply["ok"] = *result;
      } else {
        reply["error"] = result.error().message;
        reply["code"] = std::string(core::error_name(result.error().code));
      }
    } catch (const json::exception& problem) {
      reply["error"] = problem.what();
      reply["code"] = "invalid_argument";
    }
    std::cout << reply.dump() << std::endl;
  }
  return 0;
}
