#include "apps/bench/lab_files.hpp"

#include "apps/bench/byte_tokenizer.hpp"
#include "runtime/model/params.hpp"
#include "runtime/store/atomic_folder.hpp"

namespace troupe::app {
namespace {

namespace fs = std::filesystem;

core::Result<void> write_model(const LabShape& shape, const fs::path& folder) {
  model::ModelSpec spec;
  spec.architecture = "LlamaForCausalLM";
  spec.layers = shape.layers;
  spec.hidden = shape.hidden;
  spec.heads = shape.heads;
  spec.kv_heads = shape.kv_heads;
  spec.head_dim = shape.hidden / shape.heads;
  spec.ffn = shape.ffn;
  spec.vocab = kByteTokenizer_end + 1;
  spec.context = shape.context;
  spec.eos = {static_cast<int>(kByteTokenizer_end)};
  model::ParamStore params(spec);
  model::randomise(params, 7, 0.2f);
  TROUPE_TRY(model::save_model(params, folder, model::StorageDtype::kF32, {}));
  TROUPE_TRY(store::write_file(folder / "tokenizer.json", byte_tokenizer().dump()));
  return store::write_file(folder / "tokenizer_config.json", kByteTokenizerConfig);
}

std::string additions() {
  std::string lines;
  for (int a = 0; a < 16; ++a) {
    for (int b = 0; b < 16; ++b) {
      const nlohmann::json row = {{"prompt", std::to_string(a) + "+" + std::to_string(b) + "="},
                                  {"answer", std::to_string(a + b)}};
      lines += row.dump() + "\n";
    }
  }
  return lines;
}

}  // namespace

core::Result<LabFiles> LabFiles::make(const LabShape& shape, const std::string& keep) {
  LabFiles files;
  if (keep.empty()) {
    TROUPE_TRY_ASSIGN(temporary, TemporaryFolder::make("troupe-bench"));
    files.folder_ = files.temporary_.emplace(std::move(temporary)).path();
  } else {
    TROUPE_TRY(store::make_folder(keep));
    files.folder_ = fs::absolute(keep);
  }
  TROUPE_TRY(write_model(shape, files / "model"));
  TROUPE_TRY(store::write_file(files / "train.jsonl", additions()));
  TROUPE_TRY(store::write_file(files / "run.yaml",
                               "data: {input_key: prompt, label_key: answer, prompt_max_len: 32}\n"
                               "reward: {rule: regex, rule_pattern: \"[A-Za-z]{2}\"}\n"
                               "actor: {adam: {lr: 1e-4}}\n"
                               "algo: {kl: {init_coef: 0}}\n"
                               "train: {seed: 5, max_steps: 1000000}\n"));
  return files;
}

}  // namespace troupe::app
