#include "runtime/model/arithmetic.hpp"

#include "kernels/cuda/device_team.hpp"
#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"
#include "runtime/model/score.hpp"
#include "runtime/store/sha256.hpp"

#include <array>
#include <string_view>
#include <vector>

namespace troupe::model {
namespace {

constexpr std::size_t kDigits = 16;  // of the hash, in a name

// More than one block of vocabulary and of attention, no width a multiple of 16.
ModelSpec plain_spec() {
  ModelSpec spec;
  spec.architecture = "Qwen2ForCausalLM";
  spec.layers = 1;
  spec.hidden = 40;
  spec.heads = 2;
  spec.kv_heads = 1;
  spec.head_dim = 20;
  spec.ffn = 56;
  spec.vocab = kernels::kVocabBlock + 21;
  spec.context = 128;
  spec.qkv_bias = true;
  return spec;
}

// What the families of Gemma do besides that.
ModelSpec capped_spec() {
  ModelSpec spec = plain_spec();
  spec.architecture = "Gemma3ForCausalLM";
  spec.layers = 2;
  spec.vocab = 70;
  spec.tied = true;
  spec.qkv_bias = false;
  spec.activation = Activation::kGeluTanh;
  spec.qk_norm = spec.norm_plus_one = spec.post_norms = true;
  spec.embed_scale = 6.25f;
  spec.attention_softcap = 5;
  spec.final_softcap = 3;
  spec.window = 9;
  spec.sliding = {true, false};
  return spec;
}

// Log-probs and entropies of two samples of one prompt.
std::vector<float> canonical_outputs(core::TeamRunner& team,
                                     kernels::PanelDtype dtype,
                                     const ModelSpec& spec) {
  ParamStore params(spec);
  randomise(params, 17, 0.3f);
  PackedWeights weights(spec, dtype, team.memory());
  team.run([&](core::Team member) { weights.fill(member, params, 0); });
  const auto tokens = [&](std::size_t count, std::int64_t factor) {
    std::vector<std::int32_t> out;
    for (std::size_t i = 0; i < count; ++i)
      out.push_back(
          static_cast<std::int32_t>((static_cast<std::int64_t>(i + 1) * factor) % spec.vocab));
    return out;
  };
  const auto prompt = tokens(static_cast<std::size_t>(kernels::kAttentionBlock) + 3, 7);
  const auto first = tokens(6, 11), second = tokens(3, 13);
  const SampleGroup group{prompt, {first, second}};
  GroupPlan plan;
  const auto built = build_group_plan({&group, 1}, spec, team.size(), plan);
  TROUPE_CHECK(built.has_value(), "the canonical samples fit their model");
  plan.plan.place(team.memory());
  const auto targets = static_cast<std::size_t>(plan.targets.size());
  std::vector<float> outputs(2 * targets);
  const std::span<float> all(outputs);
  ScoreScratch scratch;
  score_logprobs(team, weights, plan.plan, plan.targets, 0.75f, scratch, all.first(targets),
                 all.last(targets));
  return outputs;
}

std::string hash_of(core::TeamRunner& team, kernels::PanelDtype dtype) {
  std::string bytes;
  for (const ModelSpec& spec : {plain_spec(), capped_spec()}) {
    const std::vector<float> outputs = canonical_outputs(team, dtype, spec);
    bytes.append(reinterpret_cast<const char*>(outputs.data()), outputs.size() * sizeof(float));
  }
  return store::sha256_text(bytes).substr(0, kDigits);
}

// What distinguishes classes that the hash cannot: the ABI and the GPU's architecture.
std::string place_of(const core::TeamRunner& team) {
  const auto* const device = dynamic_cast<const kernels::cuda::DeviceTeam*>(&team);
  if (device == nullptr) return "/cpu";
  const kernels::cuda::DeviceInfo info = device->device().info();
  return "/abi" + std::to_string(kernels::cuda::kAbi) + "/sm_" + std::to_string(info.major) +
         std::to_string(info.minor);
}

}  // namespace

std::string arithmetic_name(core::TeamRunner& team, kernels::PanelDtype dtype) {
  team.run([](core::Team) { kernels::flush_denormals(); });
  std::string name(kernels::name_of(dtype));
  name += "/v" + std::to_string(kArithmeticVersion);
  if (dtype == kernels::PanelDtype::kBf16Compute) name += place_of(team);
  return name + "/" + hash_of(team, dtype);
}

}  // namespace troupe::model
