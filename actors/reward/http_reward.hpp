// A reward source that asks another program over HTTP, in OpenRLHF's JSON (docs/reward_http.md).
// Used from the reward role's device thread; a call blocks at most for its deadline. A failure
// becomes an error of the batch or a missing score with its cause, never a 0. A server that cannot
// be reached, does not answer in time or answers 5xx, 408 or 429 is away (kPeerLost). After a reply
// with Retry-After it is not asked for that long, at most a minute. Every other answer counts as a
// judgement of the batch.
#pragma once

#include "actors/reward/reward_source.hpp"

namespace troupe::actors {

// `url` as in http://host:5000/get_reward. Does not connect yet: the server may come up later.
// Error kConfig: a malformed URL.
core::Result<std::unique_ptr<RewardSource>> make_http_reward(std::string url);

// With this header, set to "null", a request asks the server to answer 200 and give null for each
// sample that it cannot score. Without it `troupe serve-reward` answers 422 for such a batch, which
// OpenRLHF takes for a failure.
inline constexpr const char* kMissingHeader = "Troupe-Missing";

}  // namespace troupe::actors
