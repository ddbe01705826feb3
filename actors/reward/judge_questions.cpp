#include "actors/reward/judge_questions.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe::actors::reward {
namespace {

constexpr std::size_t kLabel = JudgeQuestion::kLabel;

void add_both_orders(std::vector<JudgeQuestion>& out,
                     std::size_t group,
                     std::size_t one,
                     std::size_t other) {
  out.push_back({group, one, other});
  out.push_back({group, other, one});
}

// The pairs of n samples in which each meets the next k.
std::vector<std::pair<std::size_t, std::size_t>> pairs_of(std::size_t n, std::size_t k) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  const std::size_t far = k == 0 ? n / 2 : std::min(k, n / 2);
  for (std::size_t step = 1; step <= far; ++step) {
    // Half way around each pair would come twice.
    const std::size_t begins = 2 * step == n ? step : n;
    for (std::size_t i = 0; i < begins; ++i)
      pairs.emplace_back(i, (i + step) % n);
  }
  return pairs;
}

// What is known of one sample.
struct Tally {
  double sum = 0;
  int counted = 0, contradictions = 0, retries = 0;
  std::string cause;  // the first reason why something is missing

  void miss(const std::string& why) {
    if (cause.empty()) cause = why;
  }
};

RewardScore score_of(const Tally& tally, bool compares) {
  RewardScore score;
  nlohmann::json extra = {{"judge_retries", tally.retries}};
  if (tally.counted == 0) {
    score.cause = tally.cause.empty() ? "the judge has nothing to compare it with" : tally.cause;
  } else {
    score.value = tally.sum / tally.counted;
    if (compares) {
      extra["judge_contradictions"] = static_cast<double>(tally.contradictions) / tally.counted;
    }
  }
  score.extra = extra.dump();
  return score;
}

// Enters both orders of a comparison; of a label nobody keeps a tally.
void enter_pair(const JudgeQuestion& question,
                const JudgeOutcome& there,
                const JudgeOutcome& back,
                std::vector<Tally>& tallies) {
  for (const std::size_t sample : {question.first, question.second}) {
    if (sample == kLabel) continue;
    Tally& tally = tallies[sample];
    tally.retries += there.retries + back.retries;
    if (!there.value || !back.value) {
      tally.miss(there.value ? back.cause : there.cause);
      continue;
    }
    // `there` has question.first first; `back` has it second.
    const double of_first = (*there.value + (1 - *back.value)) / 2;
    tally.sum += sample == question.first ? of_first : 1 - of_first;
    tally.contradictions += *there.value != 0.5 && *there.value == *back.value ? 1 : 0;
    ++tally.counted;
  }
}

}  // namespace

std::vector<JudgeQuestion> judge_questions(const Rubric& rubric,
                                           const std::vector<RewardGroup>& groups) {
  std::vector<JudgeQuestion> out;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::size_t n = groups[g].samples.size();
    if (rubric.kind == RubricKind::kPairwise) {
      for (const auto& [one, other] : pairs_of(n, static_cast<std::size_t>(rubric.opponents)))
        add_both_orders(out, g, one, other);
      continue;
    }
    if (rubric.kind == RubricKind::kReference && groups[g].label.empty()) continue;
    for (std::size_t i = 0; i < n; ++i) {
      if (rubric.kind == RubricKind::kPointwise) {
        out.push_back({g, i});
      } else {
        add_both_orders(out, g, i, kLabel);
      }
    }
  }
  return out;
}

RubricTexts texts_of(const JudgeQuestion& question, const RewardGroup& group) {
  const auto answer = [&](std::size_t sample) {
    return sample == kLabel ? group.label : group.samples[sample].response;
  };
  return {plain_prompt(group), group.label, answer(question.first), answer(question.second)};
}

std::vector<RewardScore> judge_scores(const Rubric& rubric,
                                      const std::vector<RewardGroup>& groups,
                                      const std::vector<JudgeQuestion>& questions,
                                      const std::vector<JudgeOutcome>& outcomes) {
  const bool compares = rubric.kind != RubricKind::kPointwise;
  std::vector<RewardScore> scores;
  std::size_t next = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::vector<Tally> tallies(groups[g].samples.size());
    if (rubric.kind == RubricKind::kReference && groups[g].label.empty()) {
      for (Tally& tally : tallies)
        tally.miss("the row has no label to compare with (--data.label_key)");
    }
    for (; next < questions.size() && questions[next].group == g; next += compares ? 2 : 1) {
      if (compares) {
        enter_pair(questions[next], outcomes[next], outcomes[next + 1], tallies);
        continue;
      }
      Tally& tally = tallies[questions[next].first];
      tally.retries += outcomes[next].retries;
      if (!outcomes[next].value) {
        tally.miss(outcomes[next].cause);
        continue;
      }
      tally.sum += *outcomes[next].value;
      ++tally.counted;
    }
    for (const Tally& tally : tallies)
      scores.push_back(score_of(tally, compares));
  }
  return scores;
}

}  // namespace troupe::actors::reward
