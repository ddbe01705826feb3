// A whole run on a tiny model, for tests that start, kill and resume `troupe train ppo`.
#pragma once

#include "exact_support.hpp"
#include "tests/unit/runtime/store/joined_state.hpp"
#include "tests/unit/runtime/text/byte_tokenizer.hpp"

#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <sstream>

namespace troupe::test {

inline void write_dataset(const std::filesystem::path& file) {
  std::ofstream out(file);
  for (int a = 0; a < 6; ++a) {
    for (int b = 0; b < 4; ++b) {
      out << nlohmann::json({{"prompt", std::to_string(a) + "+" + std::to_string(b) + "="},
                             {"answer", std::string(1, static_cast<char>('a' + (a + b) % 3))}})
          << '\n';
    }
  }
}

// A teacher of the tiny model: one more layer, other weights, the same tokens.
inline std::string make_tiny_teacher(const ScratchFolder& folder,
                                     const std::string& name = "teacher",
                                     model::ModelSpec spec = tiny_llama()) {
  spec.layers = 3;
  model::ParamStore params(spec);
  model::randomise(params, std::hash<std::string>{}(name), 0.2f);
  const std::filesystem::path path = folder / name;
  const auto saved = model::save_model(params, path, model::StorageDtype::kF32, {});
  EXPECT_TRUE(saved) << (saved ? "" : saved.error().message);
  write_byte_tokenizer(path);
  return path.string();
}

// Model, tokenizer and data in one folder; `words(run)` is the command line of a run of 10 updates.
class TinyRun {
 public:
  explicit TinyRun(const model::ModelSpec& spec = tiny_llama()) {
    model_ = make_tiny_model(folder_, spec);
    write_byte_tokenizer(model_);
    write_dataset(folder_ / "train.jsonl");
    // A response is right when it holds a letter: a random model hits it often enough to learn
    // from.
    std::ofstream(folder_ / "tiny.yaml") << "rollout: {batch_size: 4, n_samples_per_prompt: 4, "
                                            "max_new_tokens: 6}\n"
                                            "data: {input_key: prompt, label_key: answer, "
                                            "prompt_max_len: 32}\n"
                                            "reward: {rule: regex, rule_pattern: \"[A-Za-z]{2}\"}\n"
                                            "actor: {adam: {lr: 1e-3}}\n"
                                            "algo: {kl: {init_coef: 0.01}}\n"
                                            "train: {max_steps: 10, threads: 2, seed: 5}\n"
                                            "ckpt: {save_steps: 1, max_num: 2}\n";
  }

  std::vector<std::string> words(const std::string& run) const {
    return {"train",
            "ppo",
            (folder_ / "tiny.yaml").string(),
            "--actor.model_name_or_path",
            model_,
            "--data.prompt_dataset",
            (folder_ / "train.jsonl").string(),
            "--run.path",
            (folder_ / run).string()};
  }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }
  const std::string& model() const { return model_; }
  const ScratchFolder& folder() const { return folder_; }

 private:
  ScratchFolder folder_;
  std::string model_;
};

inline std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// The lines of a run's metrics without the values that may differ: times, speeds, and what was so
// at a moment.
inline std::map<std::uint64_t, nlohmann::json> metrics_of(const std::filesystem::path& run) {
  std::map<std::uint64_t, nlohmann::json> rows;
  std::ifstream in(run / "metrics.jsonl");
  for (std::string line; std::getline(in, line);) {
    nlohmann::json row = nlohmann::json::parse(line, nullptr, false);
    if (!row.is_object()) continue;
    nlohmann::json kept;
    for (const auto& [name, value] : row.items()) {
      const bool varies = name == "time" || name.rfind("time/", 0) == 0 ||
                          name.rfind("perf/", 0) == 0 || name == "async/queue" ||
                          name == "async/generators";
      if (!varies) kept[name] = value;
    }
    rows[row.value("step", std::uint64_t{0})] = kept;
  }
  return rows;
}

// sha256 of every file of a checkpoint, from its manifest; of a state that ranks wrote in parts
// those of the files that one process would have written.
inline std::map<std::string, std::string> hashes_of(const std::filesystem::path& checkpoint) {
  std::map<std::string, std::string> hashes;
  const auto manifest =
      nlohmann::json::parse(text_of(checkpoint / "manifest.json"), nullptr, false);
  for (const auto& file : manifest.value("files", nlohmann::json::array())) {
    hashes[file.value("path", "")] = file.value("sha256", "");
  }
  for (const std::string role : {"policy", "critic"}) {
    if (!hashes.contains(role + "/ranks.json")) continue;
    std::erase_if(hashes, [&](const auto& file) { return file.first.starts_with(role + "/"); });
    for (const auto& [name, text] : joined_state(checkpoint / role))
      hashes[role + "/" + name] = store::sha256_text(text);
  }
  return hashes;
}

inline std::vector<std::string> with(std::vector<std::string> words,
                                     const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

inline std::vector<std::string> operator+(std::vector<std::string> words,
                                          const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Lines that end, of a file that may be written meanwhile.
inline std::size_t lines_in(const std::filesystem::path& file) {
  const std::string text = text_of(file);
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace troupe::test
