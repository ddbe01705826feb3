// The forms of a flag.
#include "runtime/config/read.hpp"

#include <gtest/gtest.h>

namespace {

using namespace troupe::config;
using namespace troupe::core;

Arguments parse(std::vector<std::string> words) {
  return read_flags(keys(), words);
}

std::string flags_refusal(std::vector<std::string> words) {
  const Arguments read = parse(std::move(words));
  return read.wrong.empty() ? "accepted" : read.wrong.error().message;
}

TEST(Flags, ThreeFormsMeanTheSame) {
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"--train.seed", "7"}, {"--train.seed=7"}, {"train.seed=7"}}) {
    auto arguments = parse(words);
    ASSERT_TRUE(arguments.wrong.empty());
    ASSERT_EQ(arguments.settings.size(), 1u);
    EXPECT_EQ(arguments.settings[0].name, "train.seed");
    EXPECT_EQ(arguments.settings[0].values, std::vector<std::string>{"7"});
  }
}

TEST(Flags, OtherWordsAreFilesInOrder) {
  auto arguments = parse({"a.yaml", "--train.seed", "7", "./b=c.yaml"});
  ASSERT_TRUE(arguments.wrong.empty());
  EXPECT_EQ(arguments.files, (std::vector<std::string>{"a.yaml", "./b=c.yaml"}));
}

TEST(Flags, PairsTakeTwoWordsAndMayBeNegative) {
  auto arguments = parse({"--reward.clip_range", "-5", "5", "x.yaml"});
  ASSERT_TRUE(arguments.wrong.empty());
  EXPECT_EQ(arguments.settings[0].values, (std::vector<std::string>{"-5", "5"}));
  EXPECT_EQ(arguments.files, std::vector<std::string>{"x.yaml"});
  arguments = parse({"--actor.adam.betas", "0.9,0.99", "x.yaml"});
  ASSERT_TRUE(arguments.wrong.empty());
  EXPECT_EQ(arguments.settings[0].values, (std::vector<std::string>{"0.9", "0.99"}));
  arguments = parse({"--rollout.device", "cuda:0,cuda:1"});
  ASSERT_TRUE(arguments.wrong.empty());
  EXPECT_EQ(arguments.settings[0].values, (std::vector<std::string>{"cuda:0", "cuda:1"}));
  arguments = parse({"actor.adam.betas=[0.9, 0.99]"});
  ASSERT_TRUE(arguments.wrong.empty());
  EXPECT_EQ(arguments.settings[0].values, (std::vector<std::string>{"0.9", "0.99"}));
}

TEST(Flags, BoolFlagMayStandAlone) {
  auto arguments = parse({"--data.apply_chat_template", "x.yaml"});
  ASSERT_TRUE(arguments.wrong.empty());
  EXPECT_EQ(arguments.settings[0].values, std::vector<std::string>{"true"});
  EXPECT_EQ(arguments.files, std::vector<std::string>{"x.yaml"});
  arguments = parse({"--logger.tensorboard", "false"});
  ASSERT_TRUE(arguments.wrong.empty());
  EXPECT_EQ(arguments.settings[0].values, std::vector<std::string>{"false"});
}

// OpenRLHF writes --reward_tokens + - and --target_modules q_proj v_proj.
TEST(Flags, WordsThatFollowAListBelongToIt) {
  const auto read = parse({"--reward_tokens", "+", "-", "--target_modules", "q_proj", "v_proj",
                           "x.yaml", "--rollout.stop", "a", "data.max_len=9"});
  EXPECT_TRUE(read.wrong.empty());
  EXPECT_EQ(read.files, std::vector<std::string>{"x.yaml"});
  ASSERT_EQ(read.settings.size(), 4u);
  EXPECT_EQ(read.settings[0].values, (std::vector<std::string>{"+", "-"}));
  EXPECT_EQ(read.settings[1].values, (std::vector<std::string>{"q_proj", "v_proj"}));
  EXPECT_EQ(read.settings[2].values, std::vector<std::string>{"a"});
  EXPECT_EQ(read.settings[3].name, "data.max_len");
}

TEST(Flags, TextListsGrowAndUnderstandEscapes) {
  auto arguments = parse({"--rollout.stop", "\\n", "--rollout.stop", "a\\\\n", "x.yaml"});
  ASSERT_TRUE(arguments.wrong.empty());
  ASSERT_EQ(arguments.settings.size(), 1u);
  EXPECT_EQ(arguments.settings[0].values, (std::vector<std::string>{"\n", "a\\n"}));
  EXPECT_TRUE(arguments.settings[0].is_list);
}

TEST(Flags, PatternsKeepTheirBackslashes) {
  auto arguments = parse({"--reward.rule_pattern", "(\\d+)\\n"});
  ASSERT_TRUE(arguments.wrong.empty());
  EXPECT_EQ(arguments.settings[0].values[0], "(\\d+)\\n");
}

TEST(Flags, RefusalsNameTheFlag) {
  EXPECT_EQ(flags_refusal({"--train.sed", "1"}),
            "the command line: unknown key 'train.sed'; did you mean 'train.seed'?");
  EXPECT_EQ(flags_refusal({"--train.seed"}),
            "the command line: --train.seed needs a value (int, 0 to 1e+18)");
  EXPECT_EQ(flags_refusal({"--reward.clip_range", "1", "--train.seed", "2"}),
            "the command line: --reward.clip_range needs 2 values (2 floats, -1000000000 to "
            "1000000000)");
  EXPECT_EQ(flags_refusal({"-x"}), "the command line: unknown flag '-x'");
  EXPECT_EQ(flags_refusal({"--max_ckpt_mem", "7"}),
            "the command line: 'max_ckpt_mem' has no counterpart: 'ckpt.max_num' bounds what is "
            "kept");
}

TEST(Flags, AllThatIsWrongIsToldAndTheRestIsRead) {
  const Arguments read =
      parse({"--train.sed", "1", "a.yaml", "--nonsense", "x", "y.json", "--train.seed", "7", "-x",
             "--train.seed", "--nonsense", "--data.max_len"});
  EXPECT_EQ(read.files, std::vector<std::string>{"a.yaml"});
  ASSERT_EQ(read.settings.size(), 1u);
  EXPECT_EQ(read.settings[0].values, std::vector<std::string>{"7"});
  ASSERT_FALSE(read.wrong.empty());
  EXPECT_EQ(read.wrong.error().code, ErrorCode::kConfig);
  EXPECT_EQ(read.wrong.error().message,
            "the command line: unknown key 'train.sed'; did you mean 'train.seed'?\n"
            "error: the command line: unknown key 'nonsense'; `troupe config show` lists all keys\n"
            "error: the command line: unknown flag '-x'\n"
            "error: the command line: --train.seed needs a value (int, 0 to 1e+18)\n"
            "error: the command line: --data.max_len needs a value (int, 1 to 1048576)");
}

}  // namespace
