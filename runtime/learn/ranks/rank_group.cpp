#include "runtime/learn/ranks/rank_group.hpp"

#include "runtime/core/check.hpp"
#include "runtime/model/weights_gate.hpp"

#include <cstdint>
#include <string>

namespace troupe::learn {

std::int64_t count_of(const Ranks& ranks) {
  return ranks.gang == nullptr ? 1 : ranks.gang->size();
}

core::Result<void> in_pass(const std::function<core::Result<void>()>& own,
                           RankPasses* passes,
                           bool backward) {
  if (passes == nullptr) return own();
  passes->begin_pass();
  try {
    TROUPE_TRY(own());
  } catch (const model::GateFailure& failure) {
    return core::fail(failure.error());
  }
  return passes->finish_pass(backward);
}

core::Result<void> RankGroup::gather_bytes(const void* mine,
                                           void* all,
                                           std::span<const std::size_t> counts,
                                           std::size_t size) {
  TROUPE_CHECK(counts.size() == static_cast<std::size_t>(gang_.size()), "a count for each rank");
  std::vector<collective::Place> into;
  auto* at = static_cast<std::byte*>(all);
  for (const std::size_t count : counts) {
    into.push_back({at, count * size});
    at += count * size;
  }
  return gang_.all_gather({mine, into[static_cast<std::size_t>(rank())].bytes}, into);
}

core::Result<void> RankGroup::agree(const core::Result<void>& own) {
  struct Verdict {
    std::uint64_t failed = 0, code = 0, bytes = 0;
  } verdict;
  std::string message;
  if (rank() == 0 && !own) {
    message = own.error().message;
    verdict = {1, static_cast<std::uint64_t>(own.error().code), message.size()};
  }
  TROUPE_TRY(gang_.broadcast(0, {&verdict, sizeof verdict}));
  if (verdict.failed == 0) return {};
  message.resize(verdict.bytes);
  TROUPE_TRY(gang_.broadcast(0, {message.data(), message.size()}));
  return core::fail(static_cast<core::ErrorCode>(verdict.code), std::move(message));
}

core::Result<void> RankGroup::all_well(const core::Result<void>& own, const std::string& what) {
  const std::byte failed{own ? std::uint8_t{0} : std::uint8_t{1}};
  const std::vector<std::size_t> counts(static_cast<std::size_t>(size()), 1);
  TROUPE_TRY_ASSIGN(all, gather<std::byte>({&failed, 1}, counts));
  if (!own) return own;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == std::byte{0}) continue;
    return core::fail(core::ErrorCode::kPeerLost,
                      "rank " + std::to_string(rank) + " could not " + what);
  }
  return {};
}

core::Result<void> RankGroup::all_same(std::uint32_t crc) {
  const std::vector<std::size_t> counts(static_cast<std::size_t>(size()), 1);
  TROUPE_TRY_ASSIGN(all, gather<std::uint32_t>({&crc, 1}, counts));
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    return core::fail(
        core::ErrorCode::kInvalidArgument,
        "rank " + std::to_string(rank) + " was given other data to learn from than rank 0",
        "all ranks of a trainer learn from the same");
  }
  return {};
}

core::Failure RankGroup::leave(core::Error error) {
  // An operation of the gang may be what failed; it is over then, and this changes nothing.
  gang_.give_up(error.within("rank " + std::to_string(rank())));
  return core::fail(std::move(error));
}

}  // namespace troupe::learn
