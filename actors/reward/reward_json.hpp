// Reads and writes two remote reward protocols: OpenRLHF's, with the request {"query", "prompts",
// "labels"} and the reply {"rewards"} (also "scores", or a bare list), and that of slime and AReaL,
// with the request {"prompt", "response", "label"} and a number as the reply. Pure; any thread.
// JSON from the network is read to a depth of kJsonDepth_max and checked: a score that is no finite
// number is missing.
#pragma once

#include "actors/reward/reward_source.hpp"

#include <string>
#include <vector>

namespace troupe::actors::reward {

inline constexpr std::size_t kShown_bytes_max = 200;  // of a peer's JSON that an error quotes

// ---- for the side that asks for rewards

// The request for these groups. "query" is prompt + response, as OpenRLHF sends it.
std::string reward_request(const std::vector<RewardGroup>& groups);

// One score per item, with the sample's values from "extra_logs". Errors (kData): not JSON, no
// rewards in it, or not `count` of them; more than kRewardExtra_bytes_max besides a score.
core::Result<std::vector<RewardScore>> read_reward_reply(const std::string& text,
                                                         std::size_t count);

// {"prompt", "response", "label"} of one sample.
std::string sample_request(const RewardGroup& group, const RewardSample& sample);

// The score of one sample: a number, or an object with "reward" or "score", whose other values are
// kept besides the score. Errors as for read_reward_reply.
core::Result<std::vector<RewardScore>> read_sample_reply(const std::string& text);

// ---- for the side that answers

enum class RequestShape {
  kQueries,  // OpenRLHF's lists
  kSample,   // one {"prompt", "response", "label"}
  kSamples,  // an object of lists
};
struct RewardRequest {
  RequestShape shape = RequestShape::kQueries;
  std::vector<RewardGroup> groups;  // an object of lists with one sample a query
};

// Prompts and labels may be missing. With queries the response is the part of the query after the
// prompt; `endings` (such as "<|im_end|>") are stripped from its end repeatedly. Errors (kData):
// not JSON, no list of texts, lists of different lengths.
core::Result<RewardRequest> read_reward_request(const std::string& text,
                                                const std::vector<std::string>& endings);

// The reply in the shape of the request: for kSample a number, for kSamples a list of them. There a
// missing score is null, without its cause.
std::string reward_reply(const std::vector<RewardScore>& scores, RequestShape shape);

// {"rewards": [...], "scores": [...], "extra_logs": {NAME: [...]}}; a missing score is null, and
// then "causes" says why. Sends only extra values that every sample has as a number, because
// OpenRLHF makes tensors of them.
std::string reward_reply(const std::vector<RewardScore>& scores);

// Adds to each sample's score its entry of `extras`, a JSON object or "". Error (kData): one is
// longer than kRewardExtra_bytes_max.
core::Result<void> add_extras(const std::vector<std::string>& extras,
                              std::vector<RewardScore>& scores);

// The reply {"error": message}.
std::string reward_error(const std::string& message);

}  // namespace troupe::actors::reward
