// Prompts, answers, model.
#include "apps/bench/lag_task.hpp"

namespace troupe::app {

std::vector<std::int32_t> LagTask::prompt(core::Rng& rng) const {
  std::vector<std::int32_t> tokens;
  for (std::int32_t i = 0; i < prompt_symbols; ++i) {
    tokens.push_back(
        static_cast<std::int32_t>(rng.next_below(static_cast<std::uint64_t>(symbols))));
  }
  tokens.push_back(symbols);
  return tokens;
}

double LagTask::score(std::span<const std::int32_t> prompt,
                      std::span<const std::int32_t> answer) const {
  const auto last = static_cast<std::size_t>(prompt_symbols) - 1;
  int right = 0;
  for (std::size_t t = 0; t < answer.size() && t <= last; ++t)
    right += answer[t] == prompt[last - t] ? 1 : 0;
  return static_cast<double>(right) / static_cast<double>(answer_tokens);
}

model::ModelSpec lag_spec(const LagTask& task, model::HeadKind head) {
  model::ModelSpec spec;
  spec.architecture =
      head == model::HeadKind::kScore ? "LlamaForSequenceClassification" : "LlamaForCausalLM";
  spec.head = head;
  spec.layers = 2;
  spec.hidden = 32;
  spec.heads = spec.kv_heads = 2;
  spec.head_dim = 16;
  spec.ffn = 64;
  spec.vocab = task.vocab();
  spec.context = 32;
  spec.tied = false;
  return spec;
}

std::unique_ptr<model::ParamStore> lag_model(const LagTask& task,
                                             model::HeadKind head,
                                             std::uint64_t seed) {
  auto params = std::make_unique<model::ParamStore>(lag_spec(task, head));
  model::randomise(*params, seed, 0.12f);
  return params;
}

}  // namespace troupe::app
