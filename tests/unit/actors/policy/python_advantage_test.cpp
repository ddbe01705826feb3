// A user's own advantages, in real worker processes: what the function gets and gives, and
// functions that raise, hang, die or give nonsense.
#include "actors/policy/python_advantage.hpp"

#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace troupe::actors::policy {
namespace {

using learn::TokenNumbers;
using learn::UpdateArrays;
using Numbers = std::vector<double>;

// Two prompts with samples of 2, 1 and 3 tokens; no critic, no reference.
UpdateArrays three_samples() {
  UpdateArrays update;
  update.update = 4;
  update.scores = {1, 0.25, -2};
  update.groups = {0, 0, 1};
  update.lengths = {2, 1, 3};
  update.truncated = {0, 0, 1};
  update.episodes = {0, 1, 0};
  update.turns = {0, 1, 0, 0, 0, 1};
  update.advantages = {0.1, 0.1, -0.1, 7, 7, 7};
  update.logprobs = {-1, -2, -3, -4, -5, -6};
  update.sampled_logprobs = {-1, -2, -3, -4, -5, -6.5};
  update.versions = {3, 3, 3, 2, 2, 3};
  return update;
}

class PythonAdvantage : public ::testing::Test {
 protected:
  core::Result<std::shared_ptr<learn::AdvantageSource>> make(
      const std::string& code, core::Duration deadline = std::chrono::seconds(30)) {
    AdvantageOptions options;
    options.advantage_file = folder_.path() / "advantage.py";
    options.advantage_deadline_s = deadline;
    options.seed = 11;
    options.note = [this](const std::string& text) { notes_.push_back(text); };
    std::ofstream(options.advantage_file) << code;
    return make_python_advantage(std::move(options));
  }
  core::Result<TokenNumbers> run(const std::string& code) {
    auto source = make(code);
    if (!source) return core::fail(source.error());
    return (*source)->compute(three_samples());
  }
  std::string refusal_to_load(const std::string& code) {
    auto source = make(code);
    EXPECT_FALSE(source);
    if (source) return "loaded";
    EXPECT_EQ(source.error().code, core::ErrorCode::kConfig);
    return source.error().message;
  }
  std::string failure(const std::string& code) {
    auto numbers = run(code);
    EXPECT_FALSE(numbers);
    if (numbers) return "computed";
    EXPECT_EQ(numbers.error().code, core::ErrorCode::kData) << numbers.error().message;
    return numbers.error().message;
  }
  // The first time does `what`, and answers well when it is asked again in another process.
  std::string once(const std::string& what) const {
    return "import os, threading\n"
           "def advantage(advantages):\n"
           "    mark = '" +
           (folder_.path() / "mark").string() +
           "'\n"
           "    if not os.path.exists(mark):\n"
           "        open(mark, 'w').close()\n"
           "        " +
           what +
           "\n"
           "    return [2 * a for a in advantages]\n";
  }

  troupe::test::TempFolder folder_;
  std::vector<std::string> notes_;
};

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

TEST_F(PythonAdvantage, GetsWhatItNamesAndGivesANumberForEveryToken) {
  const auto got =
      run("def advantage(scores, groups, lengths, truncated, sampled_logprobs, versions, update, "
          "seed, own=3):\n"
          "    assert (update, seed, own) == (4, 11, 3)\n"
          "    assert list(groups) == [0, 0, 1] and list(truncated) == [0, 0, 1]\n"
          "    assert list(versions) == [3, 3, 3, 2, 2, 3]\n"
          "    print('to the log, not to the reply')\n"
          "    out = [s / 3 for s, n in zip(scores, lengths) for _ in range(n)]\n"
          "    out[-1] = sampled_logprobs[-1]\n"
          "    return out\n");
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->advantages, (Numbers{1.0 / 3, 1.0 / 3, 0.25 / 3, -2.0 / 3, -2.0 / 3, -6.5}))
      << "to the bit";
  EXPECT_EQ(got->weights, Numbers(6, 1.0));
  EXPECT_TRUE(notes_.empty());
}

TEST_F(PythonAdvantage, MayGiveWeightsAloneOrByTheSample) {
  const auto weights = run("def advantage(lengths): return {'weights': range(sum(lengths))}\n");
  ASSERT_TRUE(weights) << weights.error().message;
  EXPECT_EQ(weights->weights, (Numbers{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(weights->advantages, three_samples().advantages);
  const auto both =
      run("def advantage(scores, lengths):\n"
          "    by_sample = [[s] * int(n) for s, n in zip(scores, lengths)]\n"
          "    return {'advantages': by_sample, 'weights': by_sample[:1] + [[0.5], (1, 2, 3)]}\n");
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(both->advantages, (Numbers{1, 1, 0.25, -2, -2, -2}));
  EXPECT_EQ(both->weights, (Numbers{1, 1, 0.5, 1, 2, 3}));
}

TEST_F(PythonAdvantage, WithKwargsItGetsAllThatTheRunHas) {
  const auto got = run(
      "def advantage(lengths, **rest):\n"
      "    assert sorted(rest) == ['advantages', 'episodes', 'groups', 'logprobs',\n"
      "                            'reference_logprobs', 'sampled_logprobs', 'scores', 'seed',\n"
      "                            'teacher_logprobs', 'truncated', 'turns', 'update', 'values',\n"
      "                            'versions'], sorted(rest)\n"
      "    assert list(rest['episodes']) == [0, 1, 0] and list(rest['turns']) == [0, 1, 0, 0, 0, "
      "1]\n"
      "    assert rest['values'] is None and rest['teacher_logprobs'] is None and "
      "len(rest['logprobs']) == 6\n"
      "    return [0] * 6\n");
  ASSERT_TRUE(got) << got.error().message;
}

TEST_F(PythonAdvantage, AFileThatCannotServeIsRefusedAtTheStart) {
  EXPECT_TRUE(holds(refusal_to_load("def other(): pass\n"), "define a function `advantage`"));
  EXPECT_TRUE(holds(refusal_to_load("def advantage(scores, rewards): pass\n"),
                    "has a parameter 'rewards'; there are update, seed, scores, groups"));
  EXPECT_TRUE(holds(refusal_to_load("import no_such_package\n"), "No module named"));
  EXPECT_TRUE(holds(refusal_to_load("def advantage(reference_logprobs): pass\n"),
                    "reads reference_logprobs, and the run has no reference model; give "
                    "--algo.kl.init_coef above 0"));
  EXPECT_TRUE(holds(refusal_to_load("def advantage(values): pass\n"),
                    "the run has no critic; give --algo.advantage.estimator gae"));
  AdvantageOptions nowhere;
  nowhere.advantage_file = folder_.path() / "none.py";
  EXPECT_TRUE(holds(make_python_advantage(nowhere).error().message,
                    "algo.advantage_file: there is no file"));
}

TEST_F(PythonAdvantage, NonsenseIsAnErrorThatSaysWhere) {
  EXPECT_TRUE(holds(failure("def advantage(scores): return [0.0] * 5\n"),
                    "advantages: 5 numbers for the 6 tokens of 3 samples"));
  EXPECT_TRUE(holds(failure("def advantage(scores): return [[0, 0], [0], [0, 0]]\n"),
                    "the lists have other lengths than the samples"));
  EXPECT_TRUE(holds(failure("def advantage(scores): return [0, 0, 0, 0, float('nan'), 0]\n"),
                    "the advantage of token 1 of sample 2 (prompt 1) is nan"));
  EXPECT_TRUE(
      holds(failure("def advantage(scores): return [0, -2e6, 0, 0, 0, 0]\n"),
            "token 1 of sample 0 (prompt 0) is -2e+06; it must be a number from -1e+06 to 1e+06"));
  EXPECT_TRUE(
      holds(failure("def advantage(scores): return {'weights': [0, 0, -1, 0, 0, 0]}\n"),
            "the weight of token 0 of sample 1 (prompt 0) is -1; it must be a number from 0"));
  EXPECT_TRUE(holds(failure("def advantage(scores): return {'weight': [0] * 6}\n"),
                    "returned a dict with 'weight'"));
  EXPECT_TRUE(holds(failure("def advantage(scores): return None\n"), "raised:"));
  const std::string trace = failure("def advantage(scores): raise KeyError('mine')\n");
  EXPECT_TRUE(holds(trace, "KeyError: 'mine'") && holds(trace, "advantage.py\", line 1")) << trace;
  EXPECT_FALSE(holds(trace, "<string>")) << trace;
}

// After an error a new worker takes the next update.
TEST_F(PythonAdvantage, AnErrorEndsOneUpdateOnly) {
  auto source = make("def advantage(update): return [1.5] * (6 if update == 4 else 5)\n");
  ASSERT_TRUE(source) << source.error().message;
  UpdateArrays other = three_samples();
  other.update = 3;
  EXPECT_FALSE((*source)->compute(other));
  EXPECT_TRUE((*source)->compute(three_samples()));
  EXPECT_TRUE((*source)->compute(three_samples()));
}

TEST_F(PythonAdvantage, AWorkerThatDiesIsReplacedAndAskedAgain) {
  for (const char* end : {"os._exit(3)", "os.kill(os.getpid(), 9)"}) {
    std::filesystem::remove(folder_.path() / "mark");
    notes_.clear();
    const auto got = run(once(end));
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->advantages, (Numbers{0.2, 0.2, -0.2, 14, 14, 14}));
    ASSERT_EQ(notes_.size(), 1u);
    EXPECT_TRUE(holds(notes_[0], "the advantage worker was ended by signal 9") ||
                holds(notes_[0], "the advantage worker ended with status 3"))
        << notes_[0];
  }
}

TEST_F(PythonAdvantage, AWorkerThatHangsIsReplacedAndAskedAgain) {
  auto source = make(once("threading.Event().wait()"), std::chrono::seconds(3));
  ASSERT_TRUE(source) << source.error().message;
  const auto got = (*source)->compute(three_samples());
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->advantages, (Numbers{0.2, 0.2, -0.2, 14, 14, 14}));
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_TRUE(holds(notes_[0], "did not answer in time; it is started again")) << notes_[0];
}

TEST_F(PythonAdvantage, OneThatAlwaysDiesOrHangsFailsTheUpdate) {
  auto dies = make("import os\ndef advantage(scores): os._exit(1)\n");
  ASSERT_TRUE(dies) << dies.error().message;
  const auto dead = (*dies)->compute(three_samples());
  ASSERT_FALSE(dead);
  EXPECT_EQ(dead.error().code, core::ErrorCode::kResources) << "kClosed is a policy that ended";
  EXPECT_TRUE(holds(dead.error().message, "ended with status 1; 3 tries")) << dead.error().message;
  EXPECT_EQ(notes_.size(), 2u);
  auto hangs = make("import threading\ndef advantage(scores): threading.Event().wait()\n",
                    std::chrono::milliseconds(50));
  ASSERT_TRUE(hangs) << hangs.error().message;
  const auto late = (*hangs)->compute(three_samples());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, core::ErrorCode::kDeadline);
  EXPECT_TRUE(holds(late.error().message, "; 3 tries; raise --algo.advantage_deadline_s"))
      << late.error().message;
}

// More numbers than a line may have bytes, both ways.
TEST_F(PythonAdvantage, ALongUpdateGoesThroughWhole) {
  auto source = make("def advantage(advantages, lengths): return advantages\n");
  ASSERT_TRUE(source) << source.error().message;
  UpdateArrays update;
  const std::size_t tokens = 1'000'000;
  update.scores = {1};
  update.groups = {0};
  update.lengths = {static_cast<double>(tokens)};
  update.truncated = {0};
  for (std::size_t t = 0; t < tokens; ++t)
    update.advantages.push_back(static_cast<double>(t) / 7);
  const auto got = (*source)->compute(update);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->advantages, update.advantages);
}

}  // namespace
}  // namespace troupe::actors::policy
