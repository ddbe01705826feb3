// A round's gradients shipped between ranks and joined by their owners, on numbers whose sum
// depends on the order: against the tree built level by level.
#include "runtime/learn/ranks/lane_exchange.hpp"

#include "runtime/learn/lanes/lane_stack.hpp"
#include "tests/unit/runtime/learn/fixture.hpp"
#include "tests/unit/runtime/learn/lanes/level_tree.hpp"
#include "tests/unit/runtime/learn/ranks/rank_threads.hpp"
#include "tests/unit/runtime/model/device_team.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace troupe::learn {
namespace {

using Round = std::vector<std::optional<Numbers>>;

// What rank `gang.rank()` has after the rounds, as a buffer with the blocks of others left out.
Numbers added_by_rank(collective::Collectives& gang,
                      core::TeamRunner& team,
                      const std::vector<Round>& rounds,
                      std::int64_t staging) {
  const model::ModelSpec spec = tiny_spec();
  const auto layout = std::make_shared<const model::ParamLayout>(spec);
  const auto lanes = std::ssize(rounds.front());
  RankGroup group(gang);
  const BlockShards shards(layout->total, gang.size());
  const LaneSpan own = group.lanes_of(gang.rank(), lanes);
  LaneStack stack(spec, layout, lanes, own, team);
  LaneExchange exchange(group, shards, team, staging);
  core::Buffer<float> sum(shards.elements(gang.rank()), team.memory());
  for (const Round& round : rounds) {
    std::vector<bool> present;
    for (const auto& lane : round)
      present.push_back(lane.has_value());
    stack.begin_round();
    for (std::int64_t lane = own.begin; lane < own.end; ++lane) {
      const auto& numbers = round[static_cast<std::size_t>(lane)];
      stack.begin_lane(numbers.has_value());
      if (!numbers) continue;
      model::ParamStore& to = stack.working();
      to.memory().upload(to.data(), numbers->data(), numbers->size() * sizeof(float));
    }
    stack.end_round();
    const auto added = exchange.add_round(present, stack.sums(), sum.data());
    EXPECT_TRUE(added) << added.error().message;
  }
  Numbers shard(static_cast<std::size_t>(sum.size()));
  Numbers whole(static_cast<std::size_t>(layout->total), 0.0f);
  sum.download(shard);
  for (std::size_t i = 0; i < shard.size(); ++i)
    whole[static_cast<std::size_t>(shards.place(gang.rank(), static_cast<std::int64_t>(i)))] =
        shard[i];
  return whole;
}

// The shards of all ranks put together.
Numbers added_by_ranks(int ranks,
                       const std::vector<Round>& rounds,
                       std::int64_t staging,
                       bool on_device = false) {
  std::vector<Numbers> parts(static_cast<std::size_t>(ranks));
  test::run_ranks(ranks, [&](collective::Collectives& gang) {
    ThreadTeam threads(2);
    std::string why;
    const auto device = on_device ? model::make_device_team(why) : nullptr;
    core::TeamRunner& team = device ? *device : static_cast<core::TeamRunner&>(threads);
    parts[static_cast<std::size_t>(gang.rank())] = added_by_rank(gang, team, rounds, staging);
  });
  Numbers all = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i)
    all = added(all, parts[i]);  // where one has a number the others have 0
  return all;
}

Numbers expected_sum(const std::vector<Round>& rounds) {
  Round flat;
  for (const Round& round : rounds)
    flat.insert(flat.end(), round.begin(), round.end());
  const auto size = static_cast<std::size_t>(model::ParamLayout(tiny_spec()).total);
  return gradient_of(flat, rounds.front().size(), size);
}

std::vector<Round> some_rounds(std::size_t lanes, unsigned absent) {
  const auto size = static_cast<std::size_t>(model::ParamLayout(tiny_spec()).total);
  std::vector<Round> rounds(2, Round(lanes));
  for (std::size_t i = 0; i < 2 * lanes; ++i) {
    if ((absent >> i & 1) == 0)
      rounds[i / lanes][i % lanes] = uneven_numbers(size, 31 * i + absent);
  }
  return rounds;
}

TEST(LaneExchange, AnyRanksAddInTheOrderOfTheTree) {
  for (const std::size_t lanes : {3u, 5u, 8u}) {
    for (const unsigned absent : {0u, 0b10110u, 0b1111111100000000u, 0b0111000011111111u}) {
      const auto rounds = some_rounds(lanes, absent);
      const Numbers expected = expected_sum(rounds);
      for (int ranks = 2; ranks <= static_cast<int>(lanes); ranks += ranks < 4 ? 1 : 2) {
        // The second staging holds a block of each sum at a time.
        for (const std::int64_t staging : {kStaging_floats, std::int64_t{1}})
          EXPECT_EQ(added_by_ranks(ranks, rounds, staging), expected)
              << lanes << " lanes, absent " << absent << ", " << ranks << " ranks";
      }
    }
  }
}

TEST(LaneExchange, DeviceHasTheSameBits) {
  const auto rounds = some_rounds(8, 0b100u);
  EXPECT_EQ(added_by_ranks(3, rounds, kStaging_floats, true), expected_sum(rounds));
}

// The ranks' parts are the whole tree: a rank that has four neighbouring lanes ships one sum.
TEST(LaneExchange, ShipsOnlyTheLargestSubtrees) {
  const auto rounds = some_rounds(8, 0);
  const auto bytes_of = [&](int ranks) {
    std::vector<std::uint64_t> sent(static_cast<std::size_t>(ranks));
    test::run_ranks(ranks, [&](collective::Collectives& gang) {
      core::SerialTeam team;
      const std::uint64_t before = gang.sent_bytes();
      added_by_rank(gang, team, rounds, kStaging_floats);
      sent[static_cast<std::size_t>(gang.rank())] = gang.sent_bytes() - before;
    });
    return sent;
  };
  const auto total = static_cast<std::uint64_t>(model::ParamLayout(tiny_spec()).total);
  const BlockShards halves(static_cast<std::int64_t>(total), 2);
  const auto two = bytes_of(2);
  // Two rounds, each the other's blocks once.
  EXPECT_EQ(two[0], 2 * 4 * static_cast<std::uint64_t>(halves.elements(1)));
  EXPECT_EQ(two[1], 2 * 4 * static_cast<std::uint64_t>(halves.elements(0)));
  // Lanes 2 to 4 of rank 1 of 3 are (2 3) and 4: two sums.
  const BlockShards thirds(static_cast<std::int64_t>(total), 3);
  EXPECT_EQ(bytes_of(3)[1], 2 * 2 * 4 * (total - static_cast<std::uint64_t>(thirds.elements(1))));
}

}  // namespace
}  // namespace troupe::learn
