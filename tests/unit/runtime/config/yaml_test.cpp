// YAML files as configurations.
#include "runtime/config/read.hpp"
#include "runtime/config/render.hpp"
#include "runtime/core/error_list.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace {

using namespace troupe;

std::string file_refusal(const std::string& text) {
  auto texts = config::read_yaml(text, "demo.yaml");
  config::Builder builder(config::keys());
  auto done = texts ? builder.set_all(*texts) : core::Result<void>(texts.failure());
  if (done) return "accepted";
  EXPECT_EQ(done.error().code, core::ErrorCode::kConfig);
  return done.error().message;
}

constexpr const char* kDemo = R"(# a comment
actor:
  model_name_or_path: some/model
  adam: {lr: 1e-6, betas: [0.9, 0.99]}
rollout.max_new_tokens: 4
rollout:
  stop: ["\n"]
data:
  prompt_dataset: p.jsonl
  label_key: answer
reward: {rule: exact}
)";

class TempFile {
 public:
  explicit TempFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("troupe_config_" + std::to_string(::getpid()) + ".yaml")) {
    std::ofstream(path_) << text;
  }
  ~TempFile() { std::filesystem::remove(path_); }
  std::string name() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(Yaml, NestedAndDottedKeysBothWork) {
  TempFile file(kDemo);
  const std::vector<std::string> words = {file.name(), "--train.seed", "9"};
  auto builder = config::read(config::keys(), words);
  ASSERT_TRUE(builder) << builder.error().message;
  auto config = builder->finish();
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->actor.adam.lr, 1e-6);
  EXPECT_EQ(config->actor.adam.betas, (std::vector<double>{0.9, 0.99}));
  EXPECT_EQ(config->rollout.max_new_tokens, 4);
  EXPECT_EQ(config->rollout.stop, std::vector<std::string>{"\n"});
  EXPECT_EQ(config->train.seed, 9);
  EXPECT_EQ(builder->origins().at("rollout.max_new_tokens"), file.name() + ":5");
}

TEST(Yaml, LaterFilesAndFlagsOverride) {
  TempFile file(kDemo);
  const std::vector<std::string> words = {"--actor.adam.lr", "3e-6", file.name()};
  auto builder = config::read(config::keys(), words);
  ASSERT_TRUE(builder);
  EXPECT_EQ(builder->current().actor.adam.lr, 3e-6) << "a flag wins wherever it stands";
}

TEST(Yaml, ResolvedConfigurationReadsBackTheSame) {
  config::TrainConfig config;
  config.actor.model_name_or_path = "a: b # \"c\"\n\x01";
  config.actor.adam.lr = 0.1 + 0.2;
  config.rollout.stop = {"\n", "# x", "é"};
  config.actor.eps_clip_low_high = {0.2, 0.27};
  config.logger.tensorboard = false;
  config.resume = "off";
  const std::string yaml = config::resolved_yaml(config, {{"resume", "the command line"}});
  auto texts = config::read_yaml(yaml, "resolved_config.yaml");
  ASSERT_TRUE(texts) << texts.error().message;
  config::Builder builder(config::keys());
  auto done = builder.set_all(*texts);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(config::differences(config, builder.current()).empty());
}

TEST(Yaml, RefusalsNameFileAndLine) {
  EXPECT_EQ(file_refusal("actor:\n  adam:\n    lrr: 1\n"),
            "demo.yaml:3: unknown key 'actor.adam.lrr'; did you mean 'actor.adam.lr'?");
  EXPECT_EQ(file_refusal("train:\n  seed: abc\n"),
            "demo.yaml:2: train.seed = abc: expected a whole number, 0 to 1e+18");
  EXPECT_EQ(file_refusal("actor:\n  adam: 3\n"),
            "demo.yaml:2: 'actor.adam' is a section; its keys go below it, indented");
  EXPECT_EQ(file_refusal("actor:\n  adam:\n    # lr: 1\n"), "accepted")
      << "none of its keys is set";
  EXPECT_EQ(file_refusal("train:\n  seed: {a: 1}\n"),
            "demo.yaml:2: train.seed is a value, not a section");
  EXPECT_EQ(file_refusal("train:\n  seed: [1, 2]\n"),
            "demo.yaml:2: train.seed: expected one int, got a list of 2");
  EXPECT_EQ(file_refusal("train:\n  seed:\n"), "demo.yaml:2: train.seed has no value");
  EXPECT_EQ(file_refusal("train:\n  seed: 1\ntrain.seed: 2\n"),
            "demo.yaml:3: train.seed is given twice, first at demo.yaml:2");
  EXPECT_EQ(file_refusal("max_ckpt_mem: x\n"),
            "demo.yaml:1: 'max_ckpt_mem' has no counterpart: 'ckpt.max_num' bounds what is kept");
  EXPECT_EQ(file_refusal("- a\n- b\n"), "demo.yaml:1: expected `key: value` pairs at the top");
}

TEST(Yaml, BrokenYamlNamesTheLine) {
  EXPECT_EQ(file_refusal("train: {seed: 1}}\n").rfind("demo.yaml:1: not valid YAML", 0), 0u);
  EXPECT_EQ(file_refusal("train: [1, 2\n").find("demo.yaml:"), 0u);
  EXPECT_NE(file_refusal("a: 1\n---\nb: 2\n").find("several YAML documents"), std::string::npos);
}

TEST(Yaml, HostileFilesAreRefusedQuickly) {
  std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    bomb += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 9; ++i)
      bomb += std::string(i ? "," : "") + "*" + char(c - 1);
    bomb += "]\n";
  }
  EXPECT_NE(file_refusal(bomb), "accepted");
  EXPECT_NE(file_refusal(std::string(5u << 20, '#')).find("too large"), std::string::npos);
  EXPECT_NE(file_refusal("a: " + std::string(20'000, '[')), "accepted");
  std::string deep;
  for (int i = 0; i < 12; ++i)
    deep += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_NE(file_refusal(deep), "accepted");
}

TEST(Yaml, MissingFileIsAConfigurationError) {
  const std::vector<std::string> words = {"/no/such/file.yaml", "/tmp"};
  auto builder = config::read(config::keys(), words);
  ASSERT_FALSE(builder);
  EXPECT_EQ(builder.error().code, core::ErrorCode::kConfig);
  EXPECT_EQ(builder.error().message,
            "/no/such/file.yaml: no such configuration file; give the path of one\n"
            "error: /tmp: is a folder; a YAML file is expected");
}

TEST(Yaml, FlagsAndFilesTellAllThatIsWrong) {
  TempFile file("train:\n  sed: 1\n  seed: x\nnothing: {a: 1}\nactor.adam.lr: 1e-6\n");
  const std::vector<std::string> words = {
      file.name(), "--max_ckpt_mem", "3", "--train.threads", "-1", "--reward.normalize", "stord"};
  auto builder = config::read(config::keys(), words);
  ASSERT_FALSE(builder);
  const std::string told = builder.error().message;
  std::vector<std::string> starts;
  for (const core::Error& mistake : core::single_errors(builder.error()))
    starts.emplace_back(mistake.what().substr(0, mistake.what().find('=')));
  const std::string& name = file.name();
  EXPECT_EQ(starts, (std::vector<std::string>{
                        "the command line: 'max_ckpt_mem' has no counterpart: 'ckpt.max_num' "
                        "bounds what is kept",
                        name + ":2: unknown key 'train.sed'", name + ":4: unknown key 'nothing.a'",
                        name + ":3: train.seed ", "the command line: train.threads ",
                        "the command line: reward.normalize "}))
      << told;
  EXPECT_TRUE(told.ends_with("; did you mean 'stored'?")) << told;
}

TEST(Yaml, ATabIsCalledATab) {
  EXPECT_EQ(file_refusal("train:\n  seed: 1\nactor:\n\tadam:\n\t\tlr: 1e-6\n"),
            "demo.yaml:4: is indented with a tab; YAML takes spaces");
  EXPECT_EQ(file_refusal("actor:\n  adam:\n  \tlr: 1e-6\n").find("demo.yaml:3: is indented"), 0u);
  EXPECT_EQ(file_refusal("train:\n  seed:\t1\n"), "accepted");
}

TEST(Yaml, EmptyFileSetsNothing) {
  EXPECT_EQ(file_refusal("# nothing\n"), "accepted");
}

}  // namespace
