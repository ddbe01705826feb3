// The fixture of tests that start the program with a GPU: on the emulated device, which calls host
// code that touches a device's memory a crash, or with the library that TROUPE_TEST_CUDA_LIBRARY
// names (gpu-check). Used on a test's main thread.
#pragma once

#include "processes.hpp"

namespace troupe::test {

class Gpu : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const build = std::getenv("TROUPE_BUILD_DIR");
    const char* const named = std::getenv("TROUPE_TEST_CUDA_LIBRARY");
    const std::string emulated =
        std::string(build != nullptr ? build : "build") + "/bin/libtroupe_cuda_emulated.so";
    is_emulated_ = named == nullptr || *named == '\0';
    set("TROUPE_CUDA_LIBRARY", is_emulated_ ? emulated : named);
    set("TROUPE_CUDA_EMULATOR", "guard");
    ::unsetenv("TROUPE_CUDA_EMULATOR_MEMORY");
    std::ofstream prompts(files_ / "prompts.jsonl");
    for (const char* text : {"a", "The same beginning of two prompts: one",
                             "3+4=", "The same beginning of two prompts: two", "x y z"})
      prompts << nlohmann::json({{"prompt", text}}) << '\n';
  }
  static void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }
  bool is_emulated() const { return is_emulated_; }
  std::string path(const std::string& name) const { return (files_ / name).string(); }

  // What `generate` says of all samples: tokens and log-probs, in full.
  std::string samples(const std::string& device, const std::vector<std::string>& more) {
    std::vector<std::string> words = {
        "generate", "--model", files_.model(), "--prompts", path("prompts.jsonl"),
        "--json",   "--seed",  "11",           "--threads", "1",
        "--device", device};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramRun run = run_troupe(words);
    EXPECT_EQ(run.status, 0) << run.output;
    return run.output;
  }
  void expect_the_same(const std::vector<std::string>& more) {
    const std::string host = samples("cpu", more), device = samples("cuda", more);
    EXPECT_NE(host.find("logprobs"), std::string::npos);
    EXPECT_EQ(host, device) << ::testing::PrintToString(more);
  }
  void expect_error(std::vector<std::string> words,
                    int status,
                    const std::vector<std::string>& parts) const {
    const Ended ended = troupe_ends(std::move(words), files_ / "log.txt", 30);
    EXPECT_EQ(ended.status, status) << ended.text;
    for (const std::string& part : parts)
      EXPECT_NE(ended.text.find(part), std::string::npos) << part << " in " << ended.text;
  }
  std::vector<std::string> one(const std::string& device) const {
    return {"generate",         "--model", files_.model(), "--prompt", "a",
            "--max-new-tokens", "8",       "--device",     device};
  }
  // What the command says, which must end with status 0.
  std::string output_of(const std::vector<std::string>& words) const {
    const Ended ended = troupe_ends(words, files_ / "output.txt", 60);
    EXPECT_EQ(ended.status, 0) << ::testing::PrintToString(words) << "\n" << ended.text;
    return ended.text;
  }
  // Writes the model with a random score head beside it; returns the folder.
  std::string make_reward_model() const {
    const auto params = model::load_model(files_.model(), model::HeadKind::kScore, 1);
    EXPECT_TRUE(params);
    EXPECT_TRUE(
        model::save_model(**params, files_ / "rm", model::StorageDtype::kF32, files_.model()));
    return path("rm");
  }
  // A run of two updates, in one process unless `transport` says otherwise.
  std::filesystem::path trained(const std::string& name,
                                const std::vector<std::string>& more,
                                const std::string& transport = "loopback") {
    std::vector<std::string> words = files_.words(name);
    words.insert(words.end(), {"--cluster.transport", transport, "--train.max_steps", "2"});
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = troupe_ends(std::move(words), files_ / (name + ".txt"), 90);
    EXPECT_EQ(ended.status, 0) << ended.text;
    said_ = ended.text;
    return files_ / name;
  }

  TinyRun files_;
  bool is_emulated_ = true;
  std::string said_;  // by the last run
};

}  // namespace troupe::test
