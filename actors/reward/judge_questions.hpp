// The questions that a rubric has about the responses of groups, and the scores that follow from
// their answers. Pure.
#pragma once

#include "actors/reward/reward_source.hpp"
#include "actors/reward/rubric.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors::reward {

// One question: about sample `first`, or about two answers, `first` of which is shown first.
// kLabel stands for the row's label.
struct JudgeQuestion {
  static constexpr std::size_t kLabel = static_cast<std::size_t>(-1);
  std::size_t group = 0, first = 0, second = kLabel;
};

// What became of a question: the number or verdict of its answer, or why there is none.
struct JudgeOutcome {
  std::optional<double> value;
  std::string cause;
  int retries = 0;
};

// Questions in order: of a group's samples, or of its pairs; of a comparison both orders, one after
// the other. A response meets the next `opponents` of its group (around its end).
std::vector<JudgeQuestion> judge_questions(const Rubric& rubric,
                                           const std::vector<RewardGroup>& groups);

// The texts of a question.
RubricTexts texts_of(const JudgeQuestion& question, const RewardGroup& group);

// One score a sample from the outcomes, in the order of the questions. A comparison without both
// answers counts for none of its two; a sample without any has no score.
std::vector<RewardScore> judge_scores(const Rubric& rubric,
                                      const std::vector<RewardGroup>& groups,
                                      const std::vector<JudgeQuestion>& questions,
                                      const std::vector<JudgeOutcome>& outcomes);

}  // namespace troupe::actors::reward
