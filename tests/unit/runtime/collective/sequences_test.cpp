// Operations drawn by seed between real processes: every byte on every rank is that of an oracle
// that knows what each rank had.
#include "tests/unit/runtime/collective/gang.hpp"
#include "tests/unit/runtime/collective/sequence.hpp"

namespace troupe::collective::test {
namespace {

struct Drawn {
  int ranks;
  Ways ways;
  std::uint64_t window, seed;
  int operations;
  std::size_t size_max;
};

class Sequences : public ::testing::TestWithParam<Drawn> {};

// Rank 1 has a memory like a device's. Counters are those of the oracle, too.
TEST_P(Sequences, EveryByteIsTheOracles) {
  const Drawn drawn = GetParam();
  Gang gang(
      drawn.ranks, drawn.ways,
      [&](Collectives& ranks, const Line& line) -> core::Result<void> {
        StagedMemory staged;
        core::Memory& memory = ranks.rank() == 1 ? staged : core::host_memory();
        Sequence sequence(ranks, drawn.seed, drawn.size_max, memory);
        for (int i = 0; i < drawn.operations; ++i)
          TROUPE_TRY(sequence.step());
        TROUPE_TRY(ranks.barrier());
        line.say(std::to_string(sequence.wrong()) + " wrong" +
                 (ranks.sent_bytes() == sequence.sent() ? "" : ", sent") +
                 (ranks.received_bytes() == sequence.received() ? "" : ", received"));
        return {};
      },
      drawn.window);
  for (int rank = 0; rank < gang.size(); ++rank) {
    EXPECT_EQ(gang.hear(rank), "0 wrong") << "rank " << rank;
    EXPECT_EQ(gang.hear(rank), "well") << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(All,
                         Sequences,
                         ::testing::Values(Drawn{1, Ways::kWindow, 4096, 9, 20, 5000},
                                           Drawn{2, Ways::kWindow, 4096, 1, 150, 30'000},
                                           Drawn{3, Ways::kWindow, 4099, 2, 150, 30'000},
                                           Drawn{5, Ways::kWindow, 777, 3, 80, 9'000},
                                           Drawn{3, Ways::kWindow, 1, 4, 20, 60},
                                           Drawn{2, Ways::kWindow, 1 << 20, 5, 20, 5'000'000},
                                           Drawn{2, Ways::kStream, 4096, 6, 60, 3'000'000},
                                           Drawn{2, Ways::kStream, 4096, 10, 12, 12'000'000},
                                           Drawn{3, Ways::kStream, 4096, 7, 150, 30'000},
                                           Drawn{5, Ways::kMixed, 4096, 8, 80, 30'000}),
                         [](const auto& drawn) {
                           return "seed" + std::to_string(drawn.param.seed);
                         });

TEST(Collectives, ARankAloneMovesItsOwnBytes) {
  Collectives alone(options_of(0, 1, Ways::kWindow));
  FolderRendezvous nowhere("/nowhere");
  ASSERT_TRUE(alone.connect(nowhere));
  char from[] = "abc", to[] = "xyz";
  ASSERT_TRUE(alone.all_gather({from, 3}, std::vector<Place>{{to, 3}}));
  EXPECT_STREQ(to, "abc");
  EXPECT_TRUE(alone.broadcast(0, {to, 3}));
  EXPECT_TRUE(alone.barrier());
}

// 2 ranks, parts of 3 and 2 bytes: by hand.
TEST(Collectives, PartsComeInTheOrderOfRanks) {
  for (const Ways ways : {Ways::kWindow, Ways::kStream}) {
    Gang gang(2, ways, [](Collectives& ranks, const Line& line) -> core::Result<void> {
      char all[] = ".....";
      const Place parts[] = {{all, 3}, {all + 3, 2}};
      const char* const mine = ranks.rank() == 0 ? "abc" : "de";
      TROUPE_TRY(ranks.all_gather({mine, ranks.rank() == 0 ? 3u : 2u}, parts));
      line.say(all);
      return {};
    });
    for (int rank = 0; rank < 2; ++rank)
      EXPECT_EQ(gang.hear(rank), "abcde");
  }
}

}  // namespace
}  // namespace troupe::collective::test
