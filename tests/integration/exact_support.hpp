// Starting build/troupe and reading its JSON line, and the tiny model of the integration tests.
#pragma once

#include "runtime/core/shell_word.hpp"
#include "runtime/model/params.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace troupe::test {

struct ProgramRun {
  int status = -1;
  std::string output;
  nlohmann::json line;  // the output as JSON; discarded when it is none
};

using core::shell_word;

// Runs `troupe WORDS...`; standard error stays the test's.
inline ProgramRun run_troupe(const std::vector<std::string>& words) {
  const char* folder = std::getenv("TROUPE_BUILD_DIR");
  std::string command = shell_word(std::string(folder != nullptr ? folder : "build") + "/troupe");
  for (const std::string& word : words) {
    command += ' ';
    command += shell_word(word);
  }
  ProgramRun run;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return run;
  char chunk[4096];
  for (std::size_t n; (n = std::fread(chunk, 1, sizeof chunk, pipe)) > 0;)
    run.output.append(chunk, n);
  const int status = ::pclose(pipe);
  run.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  run.line = nlohmann::json::parse(run.output, nullptr, false);
  return run;
}

// A folder that is gone at the end of the test.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "troupe-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// Two layers, grouped queries, a vocabulary that is no multiple of a panel, its own head.
inline model::ModelSpec tiny_llama() {
  model::ModelSpec spec;
  spec.architecture = "LlamaForCausalLM";
  spec.layers = 2;
  spec.hidden = 64;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_dim = 16;
  spec.ffn = 160;
  spec.vocab = 257;
  spec.context = 256;
  spec.eos = {2};
  return spec;
}

// Writes a model whose parameters are random and then as `change` leaves them.
inline std::string make_tiny_model(
    const ScratchFolder& folder,
    const model::ModelSpec& spec = tiny_llama(),
    const std::function<void(model::ParamStore&)>& change = nullptr) {
  model::ParamStore params(spec);
  model::randomise(params, 7, 0.2f);
  if (change) change(params);
  const std::filesystem::path path = folder / "tiny";
  const auto saved = model::save_model(params, path, model::StorageDtype::kF32, {});
  EXPECT_TRUE(saved) << (saved ? "" : saved.error().message);
  return path.string();
}

// Three layers, of which the outer ones have six experts and a shared one; the others' vocabulary.
inline model::ModelSpec tiny_moe() {
  model::ModelSpec spec;
  spec.architecture = "Qwen2MoeForCausalLM";
  spec.layers = 3;
  spec.hidden = 48;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_dim = 12;
  spec.ffn = 96;
  spec.vocab = 257;
  spec.context = 256;
  spec.qkv_bias = true;
  spec.eos = {2};
  spec.moe.experts = 6;
  spec.moe.experts_per_token = 2;
  spec.moe.ffn = 40;
  spec.moe.shared_ffn = 56;
  spec.moe.dense_layers = {1};
  return spec;
}

}  // namespace troupe::test
