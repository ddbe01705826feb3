// Ranks that are killed, frozen or aborted within an operation, and ranks that do not agree: nobody
// hangs, and the error says who and what.
#include "tests/unit/runtime/collective/gang.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace troupe::collective::test {
namespace {

using ::testing::Values;

enum class Op { kBroadcast, kBroadcastTo, kAllGather, kAllToAll, kSend, kReceive };
// Of a part: many windows of 4 KiB, or several times the staging of a stream.
std::size_t g_part = 0;

// The operation on every rank, with rank 1 as the one that sends or gets most; rank 2 waits in a
// barrier where the operation does not concern it.
core::Result<void> perform(Op op, Collectives& ranks, core::Memory& memory, std::uint64_t& wrong) {
  const int rank = ranks.rank();
  std::vector<char> mine = bytes_of(5, 0, rank, 0, g_part);
  std::vector<std::vector<char>> got(static_cast<std::size_t>(ranks.size()),
                                     std::vector<char>(g_part));
  std::vector<Place> places;
  for (auto& part : got)
    places.push_back({part.data(), part.size()});
  const auto check = [&](const std::vector<char>& bytes, int from) {
    wrong += bytes != bytes_of(5, 0, from, 0, g_part) ? 1 : 0;
  };
  const int from = op == Op::kReceive ? 0 : 1, to = 1 - from;
  switch (op) {
    case Op::kBroadcast:
    case Op::kBroadcastTo: {
      const int root = op == Op::kBroadcast ? 1 : 0;
      TROUPE_TRY(ranks.broadcast(root, {mine.data(), g_part}, memory));
      check(mine, root);
      return {};
    }
    case Op::kAllGather:
      TROUPE_TRY(ranks.all_gather({mine.data(), g_part}, places, memory));
      break;
    case Op::kAllToAll: {
      const std::vector<Source> sources(got.size(), Source{mine.data(), g_part});
      TROUPE_TRY(ranks.all_to_all(sources, places, memory));
      break;
    }
    default:
      if (rank == from) TROUPE_TRY(ranks.send(to, {mine.data(), g_part}, memory));
      if (rank == to) TROUPE_TRY(ranks.recv(from, places[0], memory));
      if (rank == to) check(got[0], from);
      return ranks.barrier();
  }
  for (int other = 0; other < ranks.size(); ++other)
    check(got[static_cast<std::size_t>(other)], other);
  return {};
}

// Rank 1 has the memory `own`.
core::Memory& memory_of_rank(const Collectives& ranks, core::Memory& own) {
  return ranks.rank() == 1 ? own : core::host_memory();
}

class Faults : public ::testing::TestWithParam<std::tuple<Op, Ways>> {
 protected:
  Op op() const { return std::get<0>(GetParam()); }
  Ways ways() const { return std::get<1>(GetParam()); }
  // Of rank 1, in which copy number `trap` never ends: most of its bytes are still to come or go.
  StagedMemory trapped(int signal) const { return StagedMemory(trap_, signal); }
  void SetUp() override {
    const bool window = ways() == Ways::kWindow;
    g_part = window ? 100'000 : 3'000'000;
    trap_ = window ? 5 : 1;
  }
  int trap_ = 0;
};

TEST_P(Faults, ARankThatIsKilledInsideIsNamedToAll) {
  Gang gang(3, ways(), [&](Collectives& ranks, const Line&) -> core::Result<void> {
    StagedMemory memory = trapped(SIGKILL);
    std::uint64_t wrong = 0;
    TROUPE_TRY(perform(op(), ranks, memory_of_rank(ranks, memory), wrong));
    return ranks.barrier();  // what rank 0 sent may be under way in the system
  });
  for (const int rank : {0, 2})
    EXPECT_EQ(gang.hear(rank), "peer lost: rank 1 of policy is gone") << "rank " << rank;
  EXPECT_EQ(gang.hear(1), "end");
}

// While rank 1 stands still, the others cannot be done: each needs it. Then all bytes are right.
TEST_P(Faults, ARankThatWasFrozenInsideIsWaitedFor) {
  Gang gang(3, ways(), [&](Collectives& ranks, const Line& line) -> core::Result<void> {
    StagedMemory memory = trapped(SIGSTOP);
    std::uint64_t wrong = 0;
    TROUPE_TRY(perform(op(), ranks, memory_of_rank(ranks, memory), wrong));
    line.say(std::to_string(wrong) + " wrong");
    return {};
  });
  gang.rank(1).wait_until_stopped();
  gang.rank(1).go_on();
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(gang.hear(rank), "0 wrong") << "rank " << rank;
    EXPECT_EQ(gang.hear(rank), "well") << "rank " << rank;
  }
}

std::string name_of_fault(const ::testing::TestParamInfo<std::tuple<Op, Ways>>& info) {
  const char* const ops[] = {"Broadcast", "BroadcastTo", "AllGather",
                             "AllToAll",  "Send",        "Receive"};
  const char* const ways[] = {"Window", "Stream", "Mixed"};
  return std::string(ops[static_cast<int>(std::get<0>(info.param))]) +
         ways[static_cast<int>(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(All,
                         Faults,
                         ::testing::Combine(Values(Op::kBroadcast,
                                                   Op::kBroadcastTo,
                                                   Op::kAllGather,
                                                   Op::kAllToAll,
                                                   Op::kSend,
                                                   Op::kReceive),
                                            Values(Ways::kWindow, Ways::kStream)),
                         name_of_fault);

// Rank 0 takes nothing until rank 1 has given all that the system buffers. For some of the sizes
// the rest is in rank 1's staging then, and what it sends next must come after it.
TEST(Staging, WhatTheSystemDidNotTakeYetGoesFirst) {
  for (std::size_t bytes = 1'000'000; bytes < 9'000'000; bytes += 1'000'000) {
    Gang gang(2, Ways::kStream, [&](Collectives& ranks, const Line& line) -> core::Result<void> {
      StagedMemory trapped(ranks.rank() == 0 ? 0 : -1, SIGSTOP);
      std::vector<char> big = bytes_of(6, 0, 1, 0, bytes), small = bytes_of(6, 1, 1, 0, 100);
      if (ranks.rank() == 1) {
        TROUPE_TRY(ranks.send(0, {big.data(), big.size()}, trapped));
        return ranks.send(0, {small.data(), small.size()});
      }
      const auto wanted = std::pair(big, small);
      std::fill(big.begin(), big.end(), 'x');
      TROUPE_TRY(ranks.recv(1, {big.data(), big.size()}, trapped));
      TROUPE_TRY(ranks.recv(1, {small.data(), small.size()}));
      line.say(wanted == std::pair(big, small) ? "right" : "wrong");
      return {};
    });
    gang.rank(0).wait_until_stopped();
    gang.rank(1).wait_until_asleep();
    gang.rank(0).go_on();
    EXPECT_EQ(gang.hear(0), "right") << bytes;
    EXPECT_EQ(gang.hear(1), "well") << bytes;
  }
}

// Killed from outside, at any moment of many barriers.
TEST(Barriers, ARankThatIsKilledIsNamedToAll) {
  for (const Ways ways : {Ways::kWindow, Ways::kMixed}) {
    Gang gang(5, ways, [](Collectives& ranks, const Line& line) -> core::Result<void> {
      for (int round = 0;; ++round) {
        if (round == 20 && ranks.rank() == 3) line.say("under way");
        TROUPE_TRY(ranks.barrier());
      }
    });
    EXPECT_EQ(gang.hear(3), "under way");
    gang.rank(3).kill();
    for (const int rank : {0, 1, 2, 4}) {
      EXPECT_EQ(gang.hear(rank), "peer lost: rank 3 of policy is gone") << "rank " << rank;
    }
  }
}

// Rank 0 waits for rank 1, which computes; it hears of rank 2 all the same.
TEST(Pairs, ARankThatIsKilledElsewhereEndsThem) {
  for (const Ways ways : {Ways::kWindow, Ways::kStream}) {
    Gang gang(3, ways, [](Collectives& ranks, const Line& line) -> core::Result<void> {
      char byte = 'x';
      if (ranks.rank() == 0) return ranks.recv(1, {&byte, 1});
      line.say("computing");
      line.hear();
      return {};
    });
    EXPECT_EQ(gang.hear(1), "computing");
    EXPECT_EQ(gang.hear(2), "computing");
    gang.rank(2).kill();
    EXPECT_EQ(gang.hear(0), "peer lost: rank 2 of policy is gone");
  }
}

TEST(Barriers, NobodyPassesBeforeAllAreThere) {
  Gang gang(3, Ways::kWindow, [](Collectives& ranks, const Line& line) -> core::Result<void> {
    if (ranks.rank() == 0) line.say(line.hear());
    TROUPE_TRY(ranks.barrier());
    line.say("passed");
    return {};
  });
  gang.rank(0).line().say("go");
  EXPECT_EQ(gang.hear(0), "go");
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_EQ(gang.hear(rank), "passed");
}

// A rank that has done all its part and ends is no loss for those that are not done yet.
TEST(Barriers, ARankMayLeaveWhileOthersGoOn) {
  for (const Ways ways : {Ways::kWindow, Ways::kStream}) {
    Gang gang(3, ways, [](Collectives& ranks, const Line& line) -> core::Result<void> {
      TROUPE_TRY(ranks.barrier());
      if (ranks.rank() == 2) return {};
      line.hear();
      char byte = 'x';
      if (ranks.rank() == 0) return ranks.send(1, {&byte, 1});
      return ranks.recv(0, {&byte, 1});
    });
    EXPECT_EQ(gang.hear(2), "well");
    EXPECT_EQ(gang.hear(2), "end");
    for (const int rank : {0, 1})
      gang.rank(rank).line().say("go");
    for (const int rank : {0, 1})
      EXPECT_EQ(gang.hear(rank), "well") << "rank " << rank;
  }
}

TEST(Barriers, ARankThatLeftIsMissedByThoseThatNeedIt) {
  Gang gang(2, Ways::kWindow, [](Collectives& ranks, const Line&) -> core::Result<void> {
    if (ranks.rank() == 1) return {};
    return ranks.barrier();
  });
  EXPECT_EQ(gang.hear(1), "well");
  EXPECT_EQ(gang.hear(0), "peer lost: rank 1 of policy has left before all its bytes were moved");
}

// Rank 0 is in a barrier that rank 1 has not called; abort comes from another thread.
TEST(Abort, EndsTheCallHereAndIsKnownToOthers) {
  for (const Ways ways : {Ways::kWindow, Ways::kStream}) {
    Gang gang(3, ways, [](Collectives& ranks, const Line& line) -> core::Result<void> {
      if (ranks.rank() == 1) line.hear();
      std::thread aborter;
      if (ranks.rank() == 0) {
        aborter = std::thread([&] {
          line.hear();
          ranks.abort();
        });
      }
      const auto first = ranks.barrier();
      if (aborter.joinable()) aborter.join();
      line.say(first ? "passed" : words_of(first.error()));
      return ranks.barrier();
    });
    gang.rank(0).line().say("abort");
    for (int call = 0; call < 2; ++call) {
      EXPECT_EQ(gang.hear(0), "closed: rank 0 of policy was aborted");
      EXPECT_EQ(gang.hear(2), "peer lost: rank 0 of policy was aborted");
    }
    gang.rank(1).line().say("go");
    const std::string lost = "peer lost: rank 0 of policy was aborted";
    const std::string first = gang.hear(1);  // passed, if rank 0 had called it in time
    EXPECT_TRUE(first == "passed" || first == lost) << first;
    EXPECT_EQ(gang.hear(1), lost);
  }
}

TEST(Abort, EndsConnectingToo) {
  const troupe::test::TempFolder folder;
  Collectives ranks(options_of(0, 2, Ways::kWindow));
  FolderRendezvous rendezvous(folder.path());
  std::thread aborter([&] { ranks.abort(); });
  const auto connected = ranks.connect(rendezvous);
  aborter.join();
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code, core::ErrorCode::kClosed);
}

// ---- ranks that do not agree ----

struct Disagreement {
  std::string name, first, second;  // what ranks 0 and 1 are in, as the error says it
  Gang::Body zero, one;
};

char g_bytes[64];

Gang::Body barrier() {
  return [](Collectives& ranks, const Line&) { return ranks.barrier(); };
}
Gang::Body broadcast(int root, std::size_t bytes) {
  return [=](Collectives& ranks, const Line&) { return ranks.broadcast(root, {g_bytes, bytes}); };
}
Gang::Body gather(std::size_t part_of_2) {
  return [=](Collectives& ranks, const Line&) {
    const std::vector<Place> parts = {{g_bytes, 4}, {g_bytes + 4, 5}, {g_bytes + 9, part_of_2}};
    const Place mine = parts[static_cast<std::size_t>(ranks.rank())];
    return ranks.all_gather({mine.at, mine.bytes}, parts);
  };
}
Gang::Body send(int to, std::size_t bytes) {
  return [=](Collectives& ranks, const Line&) { return ranks.send(to, {g_bytes, bytes}); };
}
Gang::Body receive(int from, std::size_t bytes) {
  return [=](Collectives& ranks, const Line&) { return ranks.recv(from, {g_bytes, bytes}); };
}

TEST(Disagreements, AreErrorsThatNameBothRanksAndWhatTheyDo) {
  const Disagreement all[] = {
      {"operation", "barrier, sending 0 bytes and expecting 0, in call 1",
       "broadcast from rank 0, sending 0 bytes and expecting 8, in call 1", barrier(),
       broadcast(0, 8)},
      {"root", "broadcast from rank 0, sending 8 bytes and expecting 0, in call 1",
       "broadcast from rank 1, sending 8 bytes and expecting 0, in call 1", broadcast(0, 8),
       broadcast(1, 8)},
      {"operation alone", "barrier, sending 0 bytes and expecting 0, in call 1",
       "all_gather, sending 0 bytes and expecting 0, in call 1", barrier(),
       [](Collectives& ranks, const Line&) { return ranks.all_gather({}, std::vector<Place>(2)); }},
      {"root alone", "broadcast from rank 0, sending 0 bytes and expecting 0, in call 1",
       "broadcast from rank 1, sending 0 bytes and expecting 0, in call 1", broadcast(0, 0),
       broadcast(1, 0)},
      {"bytes", "broadcast from rank 0, sending 8 bytes and expecting 0, in call 1",
       "broadcast from rank 0, sending 0 bytes and expecting 7, in call 1", broadcast(0, 8),
       broadcast(0, 7)},
      {"both receive", "recv, sending 0 bytes and expecting 8, in call 1",
       "recv, sending 0 bytes and expecting 8, in call 1", receive(1, 8), receive(0, 8)},
      {"both send", "send, sending 8 bytes and expecting 0, in call 1",
       "send, sending 8 bytes and expecting 0, in call 1", send(1, 8), send(0, 8)},
      {"sizes of a pair", "send, sending 8 bytes and expecting 0, in call 1",
       "recv, sending 0 bytes and expecting 9, in call 1", send(1, 8), receive(0, 9)},
      {"a pair against all", "send, sending 8 bytes and expecting 0, in call 1",
       "barrier, sending 0 bytes and expecting 0, in call 1", send(1, 8), barrier()},
  };
  for (const Ways ways : {Ways::kWindow, Ways::kStream}) {
    for (const Disagreement& one : all) {
      Gang gang(2, ways, [&](Collectives& ranks, const Line& line) {
        return (ranks.rank() == 0 ? one.zero : one.one)(ranks, line);
      });
      const std::string seen_by_0 = "invalid argument: ranks do not agree: rank 0 is in " +
                                    one.first + " with rank 1, which is in " + one.second;
      const std::string seen_by_1 = "invalid argument: ranks do not agree: rank 1 is in " +
                                    one.second + " with rank 0, which is in " + one.first;
      for (const int rank :
           {0, 1}) {  // the first to see it tells the other, which may have seen it
        const std::string said = gang.hear(rank);
        EXPECT_TRUE(said == seen_by_0 || said == seen_by_1) << one.name << ": " << said;
      }
    }
  }
}

// Ranks 0 and 2 do not agree about the part of rank 2; rank 1 sides with rank 0 and hears of it.
TEST(Disagreements, EndTheCallOfAThirdRank) {
  Gang gang(3, Ways::kWindow, [](Collectives& ranks, const Line& line) {
    return gather(ranks.rank() == 2 ? 7 : 6)(ranks, line);
  });
  for (int rank = 0; rank < 3; ++rank) {
    const std::string said = gang.hear(rank);
    EXPECT_NE(said.find("ranks do not agree"), said.npos) << said;
    EXPECT_NE(said.find("rank 2"), said.npos) << said;
    EXPECT_NE(said.find("7 bytes"), said.npos) << said;
  }
}

TEST(Disagreements, WrongArgumentsEndTheGang) {
  const std::pair<Gang::Body, std::string> all[] = {
      {broadcast(3, 8), "broadcast from rank 3 of 2 ranks of policy"},
      {send(-1, 8), "send to rank -1 of 2 ranks of policy"},
      {send(0, 8), "send from rank 0 to itself"},
      {[](Collectives& ranks, const Line&) {
         return ranks.all_gather({g_bytes, 3}, {});
       },
       "all_gather on rank 0 of policy: 0 places for 2 ranks, or a part of 3 bytes with a place of "
       "another size"}};
  for (const auto& [body, message] : all) {
    Gang gang(2, Ways::kWindow, [&](Collectives& ranks, const Line& line) {
      return (ranks.rank() == 0 ? body : barrier())(ranks, line);
    });
    for (const int rank : {0, 1})
      EXPECT_EQ(gang.hear(rank), "invalid argument: " + message);
  }
}

}  // namespace
}  // namespace troupe::collective::test
