#include "apps/bench/lab_files.hpp"

#include "runtime/model/params.hpp"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

namespace troupe::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr unsigned kEnd = 256;  // the token behind the bytes

core::Result<void> write_text(const fs::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  out.close();
  if (out) return {};
  return core::fail(core::ErrorCode::kResources, "cannot write " + file.string());
}

// GPT-2's alphabet of bytes: token b is byte b.
json byte_vocabulary() {
  json vocabulary = {{"<|end|>", kEnd}};
  unsigned next = 0;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool prints =
        (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const unsigned point = prints ? byte : 0x100 + next++;
    std::string letter;
    if (point >= 0x80) letter += static_cast<char>(0xC0 | (point >> 6));
    letter += static_cast<char>(point >= 0x80 ? 0x80 | (point & 0x3F) : point);
    vocabulary[letter] = byte;
  }
  return vocabulary;
}

core::Result<void> write_tokenizer(const fs::path& folder) {
  const json level = {{"type", "ByteLevel"},
                      {"add_prefix_space", false},
                      {"trim_offsets", true},
                      {"use_regex", true}};
  const json end = {{"id", kEnd},      {"content", "<|end|>"}, {"single_word", false},
                    {"lstrip", false}, {"rstrip", false},      {"normalized", false},
                    {"special", true}};
  const json bpe = {{"type", "BPE"},
                    {"dropout", nullptr},
                    {"unk_token", nullptr},
                    {"continuing_subword_prefix", nullptr},
                    {"end_of_word_suffix", nullptr},
                    {"fuse_unk", false},
                    {"byte_fallback", false},
                    {"vocab", byte_vocabulary()},
                    {"merges", json::array()}};
  const json tokenizer = {{"version", "1.0"},
                          {"truncation", nullptr},
                          {"padding", nullptr},
                          {"added_tokens", json::array({end})},
                          {"normalizer", nullptr},
                          {"pre_tokenizer", level},
                          {"post_processor", nullptr},
                          {"decoder", level},
                          {"model", bpe}};
  TROUPE_TRY(write_text(folder / "tokenizer.json", tokenizer.dump()));
  return write_text(folder / "tokenizer_config.json",
                    R"({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>"})");
}

core::Result<void> write_model(const LabShape& shape, const fs::path& folder) {
  model::ModelSpec spec;
  spec.architecture = "LlamaForCausalLM";
  spec.layers = shape.layers;
  spec.hidden = shape.hidden;
  spec.heads = shape.heads;
  spec.kv_heads = shape.kv_heads;
  spec.head_dim = shape.hidden / shape.heads;
  spec.ffn = shape.ffn;
  spec.vocab = kEnd + 1;
  spec.context = shape.context;
  spec.eos = {static_cast<int>(kEnd)};
  model::ParamStore params(spec);
  model::randomise(params, 7, 0.2f);
  TROUPE_TRY(model::save_model(params, folder, model::StorageDtype::kF32, {}));
  return write_tokenizer(folder);
}

core::Result<void> write_data(const fs::path& file) {
  std::string lines;
  for (int a = 0; a < 16; ++a) {
    for (int b = 0; b < 16; ++b) {
      const json row = {{"prompt", std::to_string(a) + "+" + std::to_string(b) + "="},
                        {"answer", std::to_string(a + b)}};
      lines += row.dump() + "\n";
    }
  }
  return write_text(file, lines);
}

core::Result<fs::path> folder_for(const std::string& keep) {
  std::error_code error;
  if (!keep.empty()) {
    fs::create_directories(keep, error);
    if (!error) return fs::absolute(keep);
    return core::fail(core::ErrorCode::kResources, "cannot make " + keep + ": " + error.message());
  }
  std::string pattern = (fs::temp_directory_path() / "troupe-bench-XXXXXX").string();
  if (::mkdtemp(pattern.data()) != nullptr) return fs::path(pattern);
  return core::fail(core::ErrorCode::kResources,
                    "cannot make a temporary folder " + pattern + ": " + std::strerror(errno));
}

}  // namespace

core::Result<LabFiles> LabFiles::make(const LabShape& shape, const std::string& keep) {
  TROUPE_TRY_ASSIGN(folder, folder_for(keep));
  LabFiles files(std::move(folder), !keep.empty());
  TROUPE_TRY(write_model(shape, files / "model"));
  TROUPE_TRY(write_data(files / "train.jsonl"));
  TROUPE_TRY(write_text(files / "run.yaml",
                        "data: {input_key: prompt, label_key: answer, prompt_max_len: 32}\n"
                        "reward: {rule: regex, rule_pattern: \"[A-Za-z]{2}\"}\n"
                        "actor: {adam: {lr: 1e-4}}\n"
                        "algo: {kl: {init_coef: 0}}\n"
                        "train: {seed: 5}\n"));
  return files;
}

LabFiles::LabFiles(LabFiles&& other) noexcept
    : folder_(std::exchange(other.folder_, {})), keep_(other.keep_) {}

LabFiles::~LabFiles() {
  std::error_code ignored;
  if (!keep_ && !folder_.empty()) fs::remove_all(folder_, ignored);
}

std::vector<std::string> LabFiles::train_words(const std::vector<std::string>& more) const {
  std::vector<std::string> words = {"train",
                                    "ppo",
                                    (folder_ / "run.yaml").string(),
                                    "--actor.model_name_or_path",
                                    (folder_ / "model").string(),
                                    "--data.prompt_dataset",
                                    (folder_ / "train.jsonl").string(),
                                    "--run.path",
                                    run()};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace troupe::app
