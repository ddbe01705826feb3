#include "apps/troupe/doctor_models.hpp"

#include "runtime/engine/driver.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/params.hpp"
#include "runtime/model/score.hpp"

#include <nlohmann/json.hpp>

#include <bit>
#include <cstdio>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace troupe::app {
namespace {

constexpr std::int32_t kNewTokens = 24, kSamples = 2;

core::Result<std::vector<engine::Sample>> generate(
    std::shared_ptr<const model::PackedWeights> weights,
    core::TeamRunner& team,
    const std::vector<std::int32_t>& prompt) {
  engine::EngineLimits limits;
  limits.max_num_seqs = kSamples;
  limits.max_num_batched_tokens = 16;  // the prompt goes in two chunks
  limits.kv_blocks = 16;
  TROUPE_TRY_ASSIGN(engine, engine::Engine::create(std::move(weights), limits, {}, nullptr, team));
  engine::EngineDriver driver(std::move(engine), team);
  engine::GroupRequest request;
  request.prompt = prompt;
  request.samples = kSamples;
  request.seed = 7;
  request.sampling.max_new_tokens = kNewTokens;
  TROUPE_TRY(driver.submit(std::move(request)));
  return driver.run();
}

}  // namespace

std::string tiny_config(const model::Family& family) {
  nlohmann::ordered_json config = {{"architectures", {family.language}},
                                   {"hidden_size", 40},
                                   {"intermediate_size", 56},
                                   {"num_hidden_layers", 3},
                                   {"num_attention_heads", 4},
                                   {"num_key_value_heads", 2},
                                   {"head_dim", 12},
                                   {"vocab_size", 257},
                                   {"max_position_embeddings", 128},
                                   // Read by the families with experts alone.
                                   {"num_experts", 6},
                                   {"num_experts_per_tok", 2},
                                   {"moe_intermediate_size", 20},
                                   {"shared_expert_intermediate_size", 24},
                                   {"mlp_only_layers", {1}}};
  if (family.windows == model::WindowRule::kUpper) {
    config["use_sliding_window"] = true;
    config["max_window_layers"] = 1;
  }
  if (family.windows == model::WindowRule::kPattern) config["sliding_window_pattern"] = 2;
  if (family.windows != model::WindowRule::kNone) config["sliding_window"] = 21;
  if (family.partial_rotary) config["partial_rotary_factor"] = 0.5;
  if (family.reads_query_scale) config["query_pre_attn_scalar"] = 20;
  return config.dump();
}

core::Result<FamilyCheck> check_family(const model::Family& family) {
  TROUPE_TRY_ASSIGN(spec, model::parse_spec(tiny_config(family), family.language));
  model::ParamStore params(spec);
  model::randomise(params, 3, 0.2f);
  auto weights = std::make_shared<model::PackedWeights>(spec);
  core::SerialTeam team;
  weights->fill({}, params, 0);
  std::vector<std::int32_t> prompt(19);
  std::iota(prompt.begin(), prompt.end(), 5);
  TROUPE_TRY_ASSIGN(samples, generate(weights, team, prompt));
  model::SampleGroup group{prompt, {}};
  for (const engine::Sample& sample : samples)
    group.responses.push_back(sample.tokens);
  model::GroupPlan plan;
  TROUPE_TRY(model::build_group_plan({&group, 1}, spec, team.size(), plan));
  const std::vector<float> scored =
      model::score_logprobs(team, *weights, plan.plan, plan.targets, 1.0f);
  FamilyCheck check;
  for (const engine::Sample& sample : samples) {
    for (const float logprob : sample.logprobs) {
      const float again = scored[static_cast<std::size_t>(check.tokens++)];
      const bool same =
          std::bit_cast<std::uint32_t>(logprob) == std::bit_cast<std::uint32_t>(again);
      check.differing += same ? 0 : 1;
    }
  }
  return check;
}

core::Result<void> print_families() {
  std::string wrong;
  std::printf("\nmodels (a tiny random one of each family, engine against scorer)\n");
  for (const model::Family& family : model::families()) {
    const auto check = check_family(family);
    const bool good = check && check->tokens == kNewTokens * kSamples && check->differing == 0;
    if (!good) wrong += (wrong.empty() ? "" : ", ") + std::string(family.language);
    if (check) {
      std::printf("  %-22s %s: %ld tokens, %ld differ\n", family.language, good ? "ok" : "WRONG",
                  check->tokens, check->differing);
    } else {
      std::printf("  %-22s FAILED: %s\n", family.language, check.error().message.c_str());
    }
  }
  if (wrong.empty()) return {};
  return core::fail(core::ErrorCode::kNumeric,
                    "doctor: models of " + wrong + " do not compute as they should",
                    "TROUPE_ISA=reference tells whether the kernels of this processor are why");
}

}  // namespace troupe::app
