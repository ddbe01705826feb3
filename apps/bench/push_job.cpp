#include "apps/bench/push_job.hpp"

#include "runtime/model/spec.hpp"

#include <algorithm>

namespace troupe::app {
namespace {

model::ModelSpec spec_of(std::int64_t bytes) {
  const bool large = bytes >= std::int64_t{160} << 20;
  model::ModelSpec spec;
  spec.architecture = "LlamaForCausalLM";
  spec.hidden = large ? 576 : 128;
  spec.head_dim = 64;
  spec.heads = spec.hidden / spec.head_dim;
  spec.kv_heads = large ? 3 : 1;
  spec.ffn = large ? 1536 : 384;
  spec.vocab = large ? 49152 : 4096;
  spec.context = 1024;
  spec.tied = true;
  const std::int64_t layer =
      spec.hidden * spec.qkv_width() + spec.q_width() * spec.hidden + 3 * spec.hidden * spec.ffn;
  spec.layers = std::max<std::int64_t>(1, (bytes / 4 - spec.vocab * spec.hidden) / layer);
  return spec;
}

}  // namespace

core::Result<std::unique_ptr<model::ParamStore>> base_weights(const PushJob& job) {
  if (job.model.empty()) {
    auto params = std::make_unique<model::ParamStore>(spec_of(job.bytes));
    model::randomise(*params, 3, 0.05f);
    return params;
  }
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(job.model));
  return model::load_model(folder);
}

void write_version(core::TeamRunner& team,
                   const model::ParamStore& base,
                   core::Version version,
                   model::ParamStore& out) {
  const float factor = 1.0f + static_cast<float>(version) * 0x1p-14f;
  team.run([&](core::Team member) {
    const auto [begin, end] = member.share(base.size(), 64);
    for (std::int64_t i = begin; i < end; ++i)
      out.data()[i] = factor * base.data()[i];
  });
}

}  // namespace troupe::app
