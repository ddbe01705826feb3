// Counts how often each token occurs in a sample's response so far, for the penalties. One entry
// per distinct token, ascending, so the cost of a step depends on the sample's distinct tokens and
// not on the vocabulary. Owned by the sample; changed on the engine's thread, read by the team.
// Bounded by the response's length, for which `reserve` makes room.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::engine {

struct TokenCount {
  std::int32_t token = 0;
  std::int32_t count = 0;
};

class TokenCounts {
 public:
  void reserve(std::int32_t tokens) { entries_.reserve(static_cast<std::size_t>(tokens)); }

  void add(std::int32_t token) {
    const auto at = std::lower_bound(
        entries_.begin(), entries_.end(), token,
        [](const TokenCount& entry, std::int32_t wanted) { return entry.token < wanted; });
    if (at != entries_.end() && at->token == token) {
      ++at->count;
    } else {
      entries_.insert(at, {token, 1});
    }
  }

  std::span<const TokenCount> entries() const { return entries_; }

 private:
  std::vector<TokenCount> entries_;
};

}  // namespace troupe::engine
