// Operations drawn by seed between real processes: every byte on every rank is that of an oracle
// that knows what each rank had.
#include "tests/unit/runtime/collective/gang.hpp"

namespace troupe::collective::test {
namespace {

constexpr int kAll = -1;  // in place of a receiver, for bytes that all ranks get

// One rank's view of a sequence. All ranks draw the same numbers, also those of the operations that
// concern others.
class Sequence {
 public:
  Sequence(Collectives& ranks, std::uint64_t seed, std::size_t size_max, core::Memory& memory)
      : ranks_(ranks), seed_(seed), size_max_(size_max), memory_(memory), rng_(seed) {}

  core::Result<void> step() {
    ++number_;
    switch (rng_.next_below(5)) {
      case 0:
        return broadcast();
      case 1:
        return all_gather();
      case 2:
        return all_to_all();
      case 3:
        return pair();
      default:
        return ranks_.barrier();
    }
  }
  std::uint64_t wrong() const { return wrong_; }
  std::uint64_t received() const { return received_; }
  std::uint64_t sent() const { return sent_; }

 private:
  using Bytes = std::vector<char>;

  std::size_t draw_size() {
    switch (rng_.next_below(4)) {
      case 0:
        return 0;
      case 1:
        return rng_.next_below(100);
      default:
        return rng_.next_below(size_max_);
    }
  }
  int draw_rank() { return static_cast<int>(rng_.next_below(static_cast<std::uint64_t>(size()))); }
  int size() const { return ranks_.size(); }
  Bytes had(int from, int to, std::size_t bytes) const {
    return bytes_of(seed_, number_, from, to, bytes);
  }
  void check(const Bytes& got, int from, int to) {
    wrong_ += got != had(from, to, got.size()) ? 1 : 0;
    if (from != ranks_.rank()) received_ += got.size();
  }

  core::Result<void> broadcast() {
    const int root = draw_rank();
    const std::size_t bytes = draw_size();
    Bytes mine = ranks_.rank() == root ? had(root, kAll, bytes) : Bytes(bytes, 'x');
    TROUPE_TRY(ranks_.broadcast(root, {mine.data(), bytes}, memory_));
    if (ranks_.rank() == root) sent_ += bytes * static_cast<std::size_t>(size() - 1);
    check(mine, root, kAll);
    return {};
  }

  core::Result<void> all_gather() {
    std::vector<Bytes> parts;
    std::vector<Place> into;
    for (int rank = 0; rank < size(); ++rank)
      parts.emplace_back(draw_size(), 'x');
    for (Bytes& part : parts)
      into.push_back({part.data(), part.size()});
    const std::size_t own = parts[static_cast<std::size_t>(ranks_.rank())].size();
    const Bytes mine = had(ranks_.rank(), kAll, own);
    TROUPE_TRY(ranks_.all_gather({mine.data(), own}, into, memory_));
    sent_ += own * static_cast<std::size_t>(size() - 1);
    for (int rank = 0; rank < size(); ++rank)
      check(parts[static_cast<std::size_t>(rank)], rank, kAll);
    return {};
  }

  core::Result<void> all_to_all() {
    std::vector<Bytes> out, in;
    for (int from = 0; from < size(); ++from) {
      for (int to = 0; to < size(); ++to) {
        const std::size_t bytes = draw_size();
        if (from == ranks_.rank()) out.push_back(had(from, to, bytes));
        if (to == ranks_.rank()) in.emplace_back(bytes, 'x');
        if (from == ranks_.rank() && to != from) sent_ += bytes;
      }
    }
    std::vector<Source> sources;
    std::vector<Place> places;
    for (const Bytes& bytes : out)
      sources.push_back({bytes.data(), bytes.size()});
    for (Bytes& bytes : in)
      places.push_back({bytes.data(), bytes.size()});
    TROUPE_TRY(ranks_.all_to_all(sources, places, memory_));
    for (int rank = 0; rank < size(); ++rank)
      check(in[static_cast<std::size_t>(rank)], rank, ranks_.rank());
    return {};
  }

  core::Result<void> pair() {
    if (size() == 1) return {};
    const int from = draw_rank();
    const int to = (from + 1 + draw_rank() % (size() - 1)) % size();
    const std::size_t bytes = draw_size();
    if (ranks_.rank() == from) {
      sent_ += bytes;
      const Bytes mine = had(from, to, bytes);
      return ranks_.send(to, {mine.data(), bytes}, memory_);
    }
    if (ranks_.rank() != to) return {};
    Bytes got(bytes, 'x');
    TROUPE_TRY(ranks_.recv(from, {got.data(), bytes}, memory_));
    check(got, from, to);
    return {};
  }

  Collectives& ranks_;
  const std::uint64_t seed_;
  const std::size_t size_max_;
  core::Memory& memory_;
  core::Rng rng_;
  std::uint64_t number_ = 0, wrong_ = 0, received_ = 0, sent_ = 0;
};

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
