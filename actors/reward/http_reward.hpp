// A reward that other programs give over HTTP, in one of two JSON formats (docs/reward_http.md).
// Requests are spread over its servers (server_board.hpp), many at a time. One that fails, or is
// silent for too long, is sent to another server; the first answer counts. A failure becomes an
// error of the batch or a missing score with its cause, never a 0.
//
// A server that cannot be reached, does not answer in time or answers 5xx, 408 or 429 is away;
// when none is left, so is the reward (kPeerLost). After a reply with Retry-After a server is not
// asked for that long, at most a minute. Every other answer counts as a judgement of the batch.
#pragma once

#include "actors/reward/reward_calls.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::actors::reward {

enum class RewardFormat {
  kOpenRlhf,  // a request holds all samples of a batch
  kSample,    // a request holds one sample
};

// `urls` as in http://host:5000/get_reward. Does not connect yet: a server may come up later.
// Error kConfig: no URL, one that is malformed or given twice.
core::Result<std::unique_ptr<RewardCalls>> make_http_reward(
    std::vector<std::string> urls, RewardFormat format = RewardFormat::kOpenRlhf);

// With this header, set to "null", a request asks the server to answer 200 and give null for each
// sample that it cannot score. Without it `troupe serve-reward` answers 422 for such a batch, which
// OpenRLHF takes for a failure.
inline constexpr const char* kMissingHeader = "Troupe-Missing";

}  // namespace troupe::actors::reward
