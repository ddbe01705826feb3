// The order of a supervised run, on cases worked out by hand.
#include "actors/supervised/step_loop.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace troupe::actors::supervised {
namespace {

using Signs = std::function<StepSigns(std::uint64_t done)>;

// Plays a session to its end: T step, E evaluation, C checkpoint; then S (stopped) or F (finished).
std::string played(const StepRules& rules, const Signs& signs = {}, std::uint64_t known = 0) {
  StepLoop loop(rules, known);
  std::string all;
  for (int i = 0; i < 100; ++i) {
    switch (loop.next(signs ? signs(loop.done()) : StepSigns{})) {
      case StepAct::kTrain:
        all += 'T';
        loop.trained();
        break;
      case StepAct::kEvaluate:
        all += 'E';
        loop.evaluated();
        break;
      case StepAct::kSave:
        all += 'C';
        loop.saved();
        break;
      case StepAct::kStop:
        return all + 'S';
      case StepAct::kFinish:
        return all + 'F';
    }
  }
  return all + "...";
}

Signs at(std::uint64_t step, bool StepSigns::*sign) {
  return [=](std::uint64_t done) {
    StepSigns signs;
    signs.*sign = done == step;
    return signs;
  };
}

TEST(StepLoop, WithoutAnythingElseItTakesItsStepsAndSavesTheLast) {
  EXPECT_EQ(played({.steps = 3}), "TTTCF");
}

TEST(StepLoop, EvaluatesBeforeTheFirstStepBetweenAndAfterTheLast) {
  EXPECT_EQ(played({.steps = 5, .evaluates = true}), "ETTTTTECF");
  EXPECT_EQ(played({.steps = 5, .evaluates = true, .evaluation_steps = 2}), "ETTETTETECF");
  EXPECT_EQ(played({.steps = 4, .evaluates = true, .evaluation_steps = 2}), "ETTETTECF")
      << "the last is made once";
}

TEST(StepLoop, SavesAfterTheEvaluationOfTheSameStep) {
  EXPECT_EQ(played({.steps = 4, .evaluates = true, .evaluation_steps = 2, .save_steps = 2}),
            "ETTECTTECF");
  EXPECT_EQ(played({.steps = 3, .save_steps = 1}), "TCTCTCF");
}

TEST(StepLoop, SavesWhenTheTimeHasComeAndAfterTheBestEvaluation) {
  EXPECT_EQ(played({.steps = 4}, at(2, &StepSigns::due)), "TTCTTCF");
  EXPECT_EQ(played({.steps = 4, .evaluates = true, .evaluation_steps = 2}, at(2, &StepSigns::best)),
            "ETTECTTECF");
  EXPECT_EQ(played({.steps = 4}, at(0, &StepSigns::due)), "TTTTCF") << "nothing was learned yet";
}

TEST(StepLoop, AStopEndsItAfterTheStepThatWasBegunWithItsEvaluationAndCheckpoint) {
  EXPECT_EQ(played({.steps = 5}, at(2, &StepSigns::stop)), "TTCS");
  EXPECT_EQ(played({.steps = 5, .evaluates = true, .evaluation_steps = 2}, at(2, &StepSigns::stop)),
            "ETTECS");
  EXPECT_EQ(played({.steps = 5}, [](std::uint64_t) { return StepSigns{.stop = true}; }), "TCS")
      << "a run that is to stop before its first step takes it";
  EXPECT_EQ(played({.steps = 2}, at(2, &StepSigns::stop)), "TTCF") << "it is over anyway";
}

TEST(StepLoop, AStopThatIsInAHurryOwesTheEvaluation) {
  const Signs hurried = [](std::uint64_t done) {
    return StepSigns{.stop = done == 2, .hurried = done == 2};
  };
  EXPECT_EQ(played({.steps = 5, .evaluates = true, .evaluation_steps = 2}, hurried), "ETTCS");
  const Signs at_once = [](std::uint64_t) { return StepSigns{.stop = true, .hurried = true}; };
  EXPECT_EQ(played({.steps = 1, .evaluates = true}, at_once), "ETECF") << "the last is made";
}

TEST(StepLoop, ASessionBeginsWithWhatItsCheckpointHas) {
  const StepRules rules{
      .steps = 6, .first = 4, .evaluates = true, .evaluation_steps = 2, .save_steps = 2};
  EXPECT_EQ(played(rules), "TTECF") << "the evaluation after 4 is in the record";
  StepRules owing = rules;
  owing.owes_evaluation = true;
  EXPECT_EQ(played(owing), "ETTECF");
}

// A trainer that lives on from an earlier head repeats its answers up to the fifth step.
TEST(StepLoop, NothingIsSavedWhileStepsAreRepeated) {
  EXPECT_EQ(played({.steps = 7, .first = 2, .save_steps = 1}, {}, 5), "TTTCTCTCF");
  const Signs stops = [](std::uint64_t) { return StepSigns{.stop = true, .due = true}; };
  EXPECT_EQ(played({.steps = 7, .first = 2}, stops, 5), "TTTCS");
}

}  // namespace
}  // namespace troupe::actors::supervised
