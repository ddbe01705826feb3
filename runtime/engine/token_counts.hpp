// How often each token stands in a sample's response so far, for the penalties: one entry a
// distinct token, ascending, so that a step costs as much as the sample has distinct tokens and
// never as much as the vocabulary has. Owned by the sample; grown on the engine's thread, read by
// the team. Bounded by the response's length, for which `reserve` makes room.
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
