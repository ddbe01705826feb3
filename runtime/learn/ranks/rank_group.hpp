// The ranks of one trainer, as its parts see them: which lanes a rank computes, and numbers all
// ranks must know. Owned by the model under training, used on its thread. The first error ends the
// gang (runtime/collective/collectives.hpp).
#pragma once

#include "runtime/collective/collectives.hpp"
#include "runtime/core/result.hpp"
#include "runtime/learn/lanes/lane_tree.hpp"
#include "runtime/learn/ranks/rank_passes.hpp"
#include "runtime/learn/ranks/ranks.hpp"

#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe::learn {

// Runs `own` as this rank's part in a pass that all ranks make, over divided weights if `passes` is
// not null.
core::Result<void> in_pass(const std::function<core::Result<void>()>& own,
                           RankPasses* passes,
                           bool backward);

// How many ranks train together; 1 without a gang.
std::int64_t count_of(const Ranks& ranks);

class RankGroup {
 public:
  // `gang` is connected and outlives the group.
  explicit RankGroup(collective::Collectives& gang) : gang_(gang) {}

  int rank() const { return gang_.rank(); }
  int size() const { return gang_.size(); }
  collective::Collectives& gang() { return gang_; }

  // The run of neighbouring lanes that `rank` computes: an even cut of [0, lanes), no run empty.
  LaneSpan lanes_of(int rank, std::int64_t lanes) const {
    return {lanes * rank / size(), lanes * (rank + 1) / size()};
  }

  // Each rank gives `mine` and gets those of all, one after another in the order of ranks.
  // `counts[r]` is the number that rank r gives, which all know.
  template <class T>
  core::Result<std::vector<T>> gather(std::span<const T> mine,
                                      std::span<const std::size_t> counts) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::size_t total = 0;
    for (const std::size_t count : counts)
      total += count;
    std::vector<T> all(total);
    TROUPE_TRY(gather_bytes(mine.data(), all.data(), counts, sizeof(T)));
    return all;
  }

  // Runs `part(i)`, which appends `counts[i]` numbers, for this rank's share of the parts 0 to
  // counts.size() - 1 (i mod R), and returns the numbers of all parts in ascending order. `passes`:
  // each part is a forward pass over divided weights; null: it is not.
  template <class T>
  core::Result<std::vector<T>> share(
      std::span<const std::size_t> counts,
      const std::function<core::Result<void>(std::size_t part, std::vector<T>& to)>& part,
      RankPasses* passes = nullptr);

  // What `own` says on rank 0, on every rank: nothing or an error.
  core::Result<void> agree(const core::Result<void>& own);

  // Nothing, if all ranks did well. Else an error on every rank: its own, or kPeerLost naming the
  // first rank that could not `what`. The gang goes on.
  core::Result<void> all_well(const core::Result<void>& own, const std::string& what);

  // Error kInvalidArgument, on all ranks, when they were given different data. `crc`: of a rank's.
  core::Result<void> all_same(std::uint32_t crc);

  // Ends the gang because this rank failed alone, and returns `error`.
  core::Failure leave(core::Error error);

 private:
  core::Result<void> gather_bytes(const void* mine,
                                  void* all,
                                  std::span<const std::size_t> counts,
                                  std::size_t size);

  collective::Collectives& gang_;
};

template <class T>
core::Result<std::vector<T>> RankGroup::share(
    std::span<const std::size_t> counts,
    const std::function<core::Result<void>(std::size_t part, std::vector<T>& to)>& part,
    RankPasses* passes) {
  const auto ranks = static_cast<std::size_t>(size());
  std::vector<std::size_t> by_rank(ranks), place(counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    place[i] = by_rank[i % ranks];
    by_rank[i % ranks] += counts[i];
  }
  std::vector<T> mine;
  for (std::size_t first = 0; first < counts.size(); first += ranks) {
    const std::size_t i = first + static_cast<std::size_t>(rank());
    const auto own = [&]() -> core::Result<void> {
      if (i >= counts.size()) return {};
      TROUPE_TRY(part(i, mine));
      TROUPE_CHECK(mine.size() == place[i] + counts[i], "a part has the numbers that were said");
      return {};
    };
    if (auto done = in_pass(own, passes, false); !done) return leave(done.error());
  }
  TROUPE_TRY_ASSIGN(all, gather<T>(mine, by_rank));
  std::vector<std::size_t> start(ranks, 0);
  for (std::size_t r = 1; r < ranks; ++r)
    start[r] = start[r - 1] + by_rank[r - 1];
  std::vector<T> result;
  result.reserve(all.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(start[i % ranks] + place[i]);
    result.insert(result.end(), from, from + static_cast<std::ptrdiff_t>(counts[i]));
  }
  return result;
}

// RankGroup::share, or all parts by this process alone if `group` is null.
template <class T>
core::Result<std::vector<T>> share_parts(
    RankGroup* group,
    std::span<const std::size_t> counts,
    const std::function<core::Result<void>(std::size_t part, std::vector<T>& to)>& part,
    RankPasses* passes = nullptr) {
  if (group != nullptr) return group->share<T>(counts, part, passes);
  std::vector<T> all;
  for (std::size_t i = 0; i < counts.size(); ++i)
    TROUPE_TRY(part(i, all));
  return all;
}

}  // namespace troupe::learn
