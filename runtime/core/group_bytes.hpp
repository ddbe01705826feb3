// What a group of samples takes on its way, in bytes: a group travels in one frame, delivered by
// the generator, then to each reward, then to the policy. Upper bounds of the messages' encoding,
// used where a group is cut to what fits and where a configuration that cannot fit is refused.
// Pure.
#pragma once

#include <cstdint>

namespace troupe::core {

// Header, ticket, and what a sample has beside its tokens and its text.
inline constexpr std::uint64_t kGroupRest_bytes = 512, kSampleRest_bytes = 128;
// Text of one token, as a rule; a configuration is held to it, a group to what it has.
inline constexpr std::uint64_t kTokenText_bytes = 4;

// putGroup: token, log-prob and version of each token, its kept mass when the sampler cuts the
// distribution (top_p, top_k, min_p), and the text.
constexpr std::uint64_t delivered_bytes(std::uint64_t tokens, std::uint64_t text, bool kept_mass) {
  return kSampleRest_bytes + tokens * (kept_mass ? 20 : 16) + text;
}

// experiencePage: the same without mass and text, with the reference's log-prob where there is one.
constexpr std::uint64_t experience_bytes(std::uint64_t tokens, bool reference) {
  return kSampleRest_bytes + tokens * (reference ? 20 : 16);
}

// score: the text, the token ids where the reward reads them, and once a group what the samples
// share.
constexpr std::uint64_t scored_bytes(std::uint64_t ids, std::uint64_t text) {
  return kSampleRest_bytes + ids * 4 + text;
}

// The frame of a group (wire::limits::kFrame_bytes_max).
inline constexpr std::uint64_t kGroupFrame_bytes = 1u << 20;

// Left for the samples of a group in one frame beside `shared` bytes.
constexpr std::uint64_t frame_left(std::uint64_t shared) {
  const std::uint64_t taken = kGroupRest_bytes + shared;
  return taken < kGroupFrame_bytes ? kGroupFrame_bytes - taken : 0;
}

}  // namespace troupe::core
