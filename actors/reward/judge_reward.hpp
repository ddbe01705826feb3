// A reward that a language model gives: a judge with an OpenAI-style API is asked about the
// responses as a rubric says (rubric.hpp), and its answers are read as scores. Comparisons are
// asked in both orders, so that a judge that likes the first answer gives ties. The servers are
// those of http_servers.hpp, with their windows, retries and probes.
//
// An answer that does not parse is asked for again, with another seed and temperature; what never
// parses is a missing score, never a 0. A reply 400, 413 or 422 is a missing score, too. Other
// refusals (a key, a path, a model that is not there) fail the batch. A server that sends something
// else than a chat completion is away, as one that answers 503.
#pragma once

#include "actors/reward/reward_calls.hpp"
#include "actors/reward/rubric.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::actors::reward {

struct JudgeOptions {
#define KEYS "actors/reward/reward_keys.def"
#define PART judge
#include "runtime/config/fill.def"
  Rubric rubric;
  std::string key;  // API key, which appears in no message; empty: none
};

// Does not connect yet. Errors (kConfig): no URL, one that is malformed or given twice.
//
// Scores: pointwise, the judge's number; reference, how often the response is better than the label
// in both orders, 1, 0.5 for neither, 0; pairwise, the mean of that over the responses that it
// meets. Extra values: judge_retries, questions that were asked again; of comparisons
// judge_contradictions, the share in which both orders name the same place.
core::Result<std::unique_ptr<RewardCalls>> make_judge_reward(JudgeOptions options);

}  // namespace troupe::actors::reward
