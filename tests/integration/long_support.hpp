// Runs whose groups are longer than a frame: a model that never ends a response by itself, rows
// with a long column, a Python reward that reads it.
#pragma once

#include "company_support.hpp"

namespace troupe::test {

inline constexpr std::size_t kColumn_bytes = 64u << 10;

// One layer; what follows a token depends on that token alone, and the end token is out of reach.
inline void write_endless_model(const std::filesystem::path& folder, std::int64_t context) {
  model::ModelSpec spec = tiny_llama();
  spec.layers = 1;
  spec.hidden = 16;
  spec.heads = spec.kv_heads = 1;
  spec.head_dim = 8;
  spec.ffn = 16;
  spec.context = context;
  spec.eos = {256};
  model::ParamStore params(spec);
  model::randomise(params, 7, 0.2f);
  for (const char* name :
       {"model.layers.0.self_attn.o_proj.weight", "model.layers.0.mlp.down_proj.weight"}) {
    const auto weights = params.view(name);
    std::fill(weights.begin(), weights.end(), 0.0f);
  }
  const auto width = static_cast<std::size_t>(spec.hidden);
  const auto embedding = params.view("model.embed_tokens.weight");
  for (std::size_t at = 0; at < embedding.size(); at += width)
    embedding[at] = 1;
  const auto end = params.view("lm_head.weight").subspan(256 * width, width);
  std::fill(end.begin(), end.end(), 0.0f);
  end[0] = -100;
  std::filesystem::remove_all(folder);
  const auto saved = model::save_model(params, folder, model::StorageDtype::kF32, {});
  ASSERT_TRUE(saved) << (saved ? "" : saved.error().message);
  write_byte_tokenizer(folder);
}

// `TinyRun` with that model, 16 samples a prompt of `tokens` each.
class LongRun {
 public:
  explicit LongRun(int tokens) : tokens_(tokens) {
    write_endless_model(files.model(), tokens + 64);
    std::ofstream rows(files / "train.jsonl");
    for (int i = 0; i < 8; ++i) {
      rows << nlohmann::json({{"prompt", std::to_string(i) + "+1="},
                              {"answer", std::to_string(i + 1)},
                              {"tests", std::string(kColumn_bytes, static_cast<char>('a' + i))}})
           << '\n';
    }
    std::ofstream(files / "reward.py")
        << "def reward(prompts, completions, tests):\n"
           "    assert all(len(t) == 65536 and t[0] == chr(ord('a') + int(p[0]))\n"
           "               for p, t in zip(prompts, tests))\n"
           "    return [c.count(t[0]) % 7 / 7 for c, t in zip(completions, tests)]\n";
    std::ofstream(files / "tiny.yaml")
        << "rollout: {batch_size: 1, n_samples_per_prompt: 16, max_new_tokens: " << tokens << "}\n"
        << "data: {input_key: prompt, label_key: answer, prompt_max_len: 32}\n"
        << "actor: {adam: {lr: 1e-6}}\n"
        << "train: {max_steps: 2, threads: 2, seed: 5, micro_tokens_max: " << tokens + 32 << "}\n"
        << "reward: {python: " << (files / "reward.py").string() << "}\n"
        << "ckpt: {save_steps: 1, max_num: 2}\n";
  }

  // Every sample of every rollout has its full length, and there are 16 to a prompt.
  void expect_full_lengths(const std::filesystem::path& run, std::size_t updates) const {
    std::size_t samples = 0;
    for (const auto& entry : std::filesystem::directory_iterator(run / "rollouts")) {
      std::ifstream in(entry.path());
      for (std::string text; std::getline(in, text); ++samples) {
        const auto line = nlohmann::json::parse(text);
        EXPECT_EQ(line["tokens"], tokens_);
        EXPECT_EQ(line["finish_reason"], "length");
      }
    }
    EXPECT_EQ(samples, 16 * updates);
  }

  TinyRun files;

 private:
  const int tokens_;
};

}  // namespace troupe::test
