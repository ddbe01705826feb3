#include "apps/cli/random_model.hpp"

#include "apps/cli/byte_tokenizer.hpp"
#include "apps/cli/placement.hpp"
#include "runtime/model/randomise.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace troupe::cli {
namespace {

struct Shape {
  std::string_view name, architecture;
  std::int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, context;
  bool tied, qkv_bias;
  double theta;
  float rms_eps;
};

// Shapes of published models' config.json, and two small ones: for tests, and for tasks that are
// learned from nothing on a CPU (configs/pipelines/paper.yaml).
constexpr std::array<Shape, 5> kShapes = {
    {{"tiny", "LlamaForCausalLM", 2, 64, 4, 2, 16, 160, 512, 512, true, false, 1e4, 1e-5f},
     {"small", "LlamaForCausalLM", 4, 128, 4, 4, 32, 512, 512, 512, true, false, 1e4, 1e-5f},
     {"smollm2-135m", "LlamaForCausalLM", 30, 576, 9, 3, 64, 1536, 49152, 8192, true, false, 1e5,
      1e-5f},
     {"qwen2.5-0.5b", "Qwen2ForCausalLM", 24, 896, 14, 2, 64, 4864, 151936, 32768, true, true, 1e6,
      1e-6f},
     {"llama3-8b", "LlamaForCausalLM", 32, 4096, 32, 8, 128, 14336, 128256, 8192, false, false, 5e5,
      1e-5f}}};

}  // namespace

const std::string& model_shape_names() {
  static const std::string names = [] {
    std::string all;
    for (std::size_t i = 0; i < kShapes.size(); ++i) {
      if (i > 0) all += i + 1 < kShapes.size() ? ", " : " or ";
      all += kShapes[i].name;
    }
    return all;
  }();
  return names;
}

core::Result<model::ModelSpec> spec_of_shape(const std::string& name, std::int64_t layers) {
  const auto shape = std::find_if(kShapes.begin(), kShapes.end(),
                                  [&name](const Shape& one) { return one.name == name; });
  if (shape == kShapes.end()) {
    return core::fail(core::ErrorCode::kConfig, "--shape " + name + " is not known",
                      "choose " + model_shape_names());
  }
  model::ModelSpec spec;
  spec.architecture = shape->architecture;
  spec.layers = layers > 0 ? layers : shape->layers;
  spec.hidden = shape->hidden;
  spec.heads = shape->heads;
  spec.kv_heads = shape->kv_heads;
  spec.head_dim = shape->head_dim;
  spec.ffn = shape->ffn;
  spec.vocab = shape->vocab;
  spec.context = shape->context;
  spec.rms_eps = shape->rms_eps;
  spec.tied = shape->tied;
  spec.qkv_bias = shape->qkv_bias;
  spec.rope.theta = shape->theta;
  spec.eos = {static_cast<std::int32_t>(kByteTokenizer_end)};
  return spec;
}

core::Result<void> write_random_model(const model::ModelSpec& spec,
                                      std::uint64_t seed,
                                      float deviation,
                                      model::StorageDtype dtype,
                                      const std::filesystem::path& folder) {
  model::ParamStore params(spec);
  TROUPE_TRY_ASSIGN(team, make_team({}));
  team->run([&](core::Team member) { model::randomise(member, params, seed, deviation); });
  TROUPE_TRY(model::save_model(params, folder, dtype, {}));
  TROUPE_TRY(store::write_file(folder / "tokenizer.json", byte_tokenizer().dump()));
  return store::write_file(folder / "tokenizer_config.json", kByteTokenizerConfig);
}

}  // namespace troupe::cli
