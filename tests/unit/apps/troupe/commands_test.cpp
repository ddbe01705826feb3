// The command line without its heavy commands: errors as they are printed, plain flags, facts.
#include "apps/troupe/commands.hpp"

#include "apps/cli/flags.hpp"
#include "apps/cli/sampling_flags.hpp"
#include "apps/cli/system_facts.hpp"
#include "runtime/core/error_list.hpp"
#include "runtime/core/foreign_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace troupe::app {
namespace {

using core::ErrorCode;

TEST(ErrorText, AdviceBecomesAHint) {
  const auto wrong =
      core::advised(ErrorCode::kConfig, "a.yaml:3: unknown key 'x'", "did you mean 'y'?");
  EXPECT_EQ(cli::error_text(wrong),
            "error: a.yaml:3: unknown key 'x'\n  hint: did you mean 'y'?\n");
  EXPECT_EQ(cli::error_text({ErrorCode::kConfig, "plain"}), "error: plain\n");
}

TEST(ErrorText, WordsOfOthersAreNeitherHintsNorLinesOfOurs) {
  EXPECT_EQ(cli::error_text({ErrorCode::kData, "the judge said \"too long; cut it\""}),
            "error: the judge said \"too long; cut it\"\n");
  const std::string trace = "Traceback (most recent call last):\nValueError: a; b\nerror: forged";
  EXPECT_EQ(cli::error_text(
                core::advised(ErrorCode::kData, "r.py raised:" + core::foreign(trace), "mend it")),
            "error: r.py raised:\n  | Traceback (most recent call last):\n  | ValueError: a; b\n"
            "  | error: forged\n  hint: mend it\n");
  EXPECT_EQ(cli::error_text({ErrorCode::kData, "a\nerror: b\n  hint: c\x1b[2J"}),
            "error: a\n  | error: b\n  |   hint: c[2J\n");
}

TEST(ErrorText, EachThingThatIsWrongHasItsHint) {
  core::ErrorList wrong;
  wrong.add(ErrorCode::kConfig, "first", "do this");
  wrong.add(ErrorCode::kData, "second");
  wrong.add(ErrorCode::kConfig, "first", "do this");
  EXPECT_EQ(cli::error_text(wrong.error()), "error: first\n  hint: do this\nerror: second\n");
  EXPECT_EQ(core::exit_status(wrong.error().code), 2);
}

// Names and answers of others reach the terminal without what could move its cursor.
TEST(ErrorText, IsSafeForATerminal) {
  EXPECT_EQ(cli::error_text({ErrorCode::kConfig, "no node a\x1b[31m\x07; try b\x9b"}).find('\x1b'),
            std::string::npos);
  testing::internal::CaptureStdout();
  cli::say("node/a\x1b]0;x\x07 is in");
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_EQ(said.find('\x1b'), std::string::npos) << said;
  EXPECT_EQ(said.find('\x07'), std::string::npos) << said;
}

TEST(NamedWords, StandBeforeBetweenAndBehindFlags) {
  std::string out;
  bool quick = false;
  const std::vector<cli::Flag> flags = {{"--out", &out, "a file"}, {"--quick", &quick, "or slow"}};
  std::vector<std::string> named;
  const std::vector<std::string> words = {"a", "--out", "b", "c", "--quick"};
  ASSERT_TRUE(cli::parse_flags("troupe x: y", flags, words, &named));
  EXPECT_EQ(named, (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(out, "b");
  EXPECT_TRUE(quick);
  const auto wrong = cli::parse_flags("troupe x: y", flags, cli::Words(words).first(1));
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("unknown argument 'a'"), std::string::npos);
}

TEST(ErrorText, AnInterruptionIsNoError) {
  EXPECT_EQ(cli::error_text({ErrorCode::kInterrupted, "stopped; go on so"}), "stopped; go on so\n");
}

TEST(Commands, UnknownCommandIsAConfigurationError) {
  const std::vector<std::string> words = {"trian"};
  auto done = run_command(words);
  ASSERT_FALSE(done);
  EXPECT_EQ(core::exit_status(done.error().code), 2);
  EXPECT_EQ(done.error().message, "there is no command 'trian'; did you mean `troupe train`?");
}

TEST(Commands, NamesThatAreNearAreProposed) {
  const auto refusal = [](const std::vector<std::string>& words) {
    auto done = run_command(words);
    return done ? "accepted" : done.error().message;
  };
  EXPECT_EQ(refusal({"reweight", "reward"}),
            "there is no command 'reweight'; did you mean `troupe re-weight`?");
  EXPECT_EQ(refusal({"frobnicate"}),
            "there is no command 'frobnicate'; `troupe --help` lists them");
  EXPECT_EQ(refusal({"train", "gpro"}),
            "there is no `train gpro`; grpo is `train ppo` with --algo.advantage.estimator "
            "group_norm, docs/recipes.md");
  EXPECT_EQ(refusal({"train", "hinge"}),
            "there is no `train hinge`; it is `train dpo` with --dpo.loss hinge, docs/recipes.md");
  EXPECT_EQ(refusal({"train", "stf"}), "there is no `train stf`; did you mean `train sft`?");
}

TEST(Commands, FirstHelpPageIsShort) {
  testing::internal::CaptureStdout();
  ASSERT_TRUE(run_command({}));
  const std::string page = testing::internal::GetCapturedStdout();
  EXPECT_LE(std::count(page.begin(), page.end(), '\n'), 60);
  for (const char* name : {"train ppo", "generate", "chat", "bench", "doctor", "version"}) {
    EXPECT_NE(page.find(name), std::string::npos) << name;
  }
}

TEST(Commands, WhatCanBeAttachedIsShownWithBothKinds) {
  for (const char* command : {"attach", "detach"}) {
    const std::vector<std::string> words = {command, "--help"};
    testing::internal::CaptureStdout();
    ASSERT_TRUE(run_command(words));
    const std::string page = testing::internal::GetCapturedStdout();
    EXPECT_NE(page.find(std::string("troupe ") + command + " reward"), std::string::npos) << page;
    EXPECT_NE(page.find(std::string("troupe ") + command + " environment"), std::string::npos)
        << page;
  }
}

TEST(Commands, TrainHelpIsShortAndNamesEverySection) {
  const std::vector<std::string> words = {"train", "ppo", "--help"};
  testing::internal::CaptureStdout();
  ASSERT_TRUE(run_command(words));
  const std::string page = testing::internal::GetCapturedStdout();
  EXPECT_LE(std::count(page.begin(), page.end(), '\n'), 60);
  for (const char* name : {"actor", "rollout", "algo", "ckpt"}) {
    EXPECT_NE(page.find(name), std::string::npos) << name;
  }
}

class Flags : public testing::Test {
 protected:
  std::string parse(const std::vector<std::string>& words) {
    count_ = 1;
    auto done = cli::parse_flags("troupe test: a test",
                                 {{"--name", &name_, "text"},
                                  {"--count", &count_, "number", false, 1, 8},
                                  {"--rate", &rate_, "real", false, 0, 1},
                                  {"--stop", &stop_, "texts"},
                                  {"--rows", &rows_, "numbers", false, 1, 8},
                                  {"--json", &json_, "flag"}},
                                 words);
    if (done) return "";
    EXPECT_EQ(done.error().code, ErrorCode::kConfig);
    return done.error().message;
  }
  std::string name_;
  std::int64_t count_ = 1;
  double rate_ = 0;
  std::vector<std::string> stop_;
  std::vector<std::int64_t> rows_ = {1, 2};
  bool json_ = false;
};

TEST_F(Flags, AListOfNumbersHasCommas) {
  EXPECT_EQ(parse({"--json"}), "");
  EXPECT_EQ(rows_, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(parse({"--rows", "8,1,3", "--count", "2"}), "");
  EXPECT_EQ(rows_, (std::vector<std::int64_t>{8, 1, 3}));
  EXPECT_EQ(parse({"--rows=4"}), "");
  EXPECT_EQ(rows_, (std::vector<std::int64_t>{4}));
  EXPECT_EQ(parse({"--rows", "3,9,0"}), "troupe test: --rows = 9; expected 1 to 8");
  EXPECT_NE(parse({"--rows", "3,x"}), "");
}

TEST_F(Flags, FillTheirTargets) {
  EXPECT_EQ(parse({"--name", "a b", "--count=3", "--rate", "1e-2", "--stop", "x", "--json",
                   "--stop", "-y"}),
            "");
  EXPECT_EQ(name_, "a b");
  EXPECT_EQ(count_, 3);
  EXPECT_EQ(rate_, 0.01);
  EXPECT_EQ(stop_, (std::vector<std::string>{"x", "-y"}));
  EXPECT_TRUE(json_);
}

TEST_F(Flags, RefusalsNameTheFlag) {
  EXPECT_EQ(parse({"--nmae", "x"}).find("troupe test: unknown argument '--nmae'"), 0u);
  EXPECT_NE(parse({"--counts=3"}).find("did you mean --count?"), std::string::npos);
  EXPECT_NE(parse({"--count", "nine"}).find("--count"), std::string::npos);
  EXPECT_EQ(parse({"--count", "9"}), "troupe test: --count = 9; expected 1 to 8");
  EXPECT_EQ(parse({"--rate", "nan"}), "troupe test: --rate = nan; expected 0 to 1");
  EXPECT_NE(parse({"--name"}).find("--name"), std::string::npos);
}

TEST_F(Flags, AllThatIsWrongIsTold) {
  EXPECT_EQ(parse({"--nmae", "x", "y", "--count", "9", "--rate", "2", "--jsno"}),
            "troupe test: unknown argument '--nmae'; did you mean --name?\n"
            "error: troupe test: unknown argument '--jsno'; did you mean --json?\n"
            "error: troupe test: --count = 9; expected 1 to 8\n"
            "error: troupe test: --rate = 2; expected 0 to 1");
}

// As in `troupe train`, whose keys are read elsewhere.
TEST_F(Flags, ASwitchTakesAWordOrNone) {
  for (const char* yes : {"true", "yes", "on", "1", "True"}) {
    json_ = false;
    EXPECT_EQ(parse({"--json", yes, "--name", "true"}), "") << yes;
    EXPECT_TRUE(json_) << yes;
    EXPECT_EQ(name_, "true");
    json_ = false;
    EXPECT_EQ(parse({std::string("--json=") + yes}), "") << yes;
    EXPECT_TRUE(json_) << yes;
  }
  for (const char* no : {"false", "no", "off", "0"}) {
    json_ = true;
    EXPECT_EQ(parse({"--json", no}), "") << no;
    EXPECT_FALSE(json_) << no;
  }
  EXPECT_EQ(parse({"--json=maybe"}), "troupe test: --json=maybe; expected true or false");
  EXPECT_EQ(parse({"--json", "maybe"}).find("troupe test: unknown argument 'maybe'"), 0u);
}

TEST(SamplingFlags, BecomeParameters) {
  cli::SamplingFlags sampling;
  sampling.temperature = 0.5;
  sampling.top_k = 7;
  sampling.stop = {"\\n", "a\\\\b"};
  const engine::SamplingParams params = sampling.params();
  EXPECT_EQ(params.temperature, 0.5f);
  EXPECT_EQ(params.top_k, 7);
  EXPECT_EQ(params.stop_strings, (std::vector<std::string>{"\n", "a\\b"}));
}

TEST(SystemFacts, AreThere) {
  EXPECT_GE(cli::usable_cores(), 1);
  EXPECT_GT(cli::memory_facts().total_bytes, 0u);
  EXPECT_GT(cli::disk_facts("/no/such/folder").total_bytes, 0u);
  EXPECT_EQ(cli::bytes_text(512), "512 B");
  EXPECT_EQ(cli::bytes_text(3u << 20), "3.0 MiB");
}

}  // namespace
}  // namespace troupe::app
