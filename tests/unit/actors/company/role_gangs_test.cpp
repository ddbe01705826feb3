// The ranks of a gang start together and go together.
#include "actors/company/limits.hpp"
#include "actors/company/role_placement.hpp"
#include "runtime/core/ids.hpp"
#include "tests/unit/actors/company/time_support.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace troupe::actors::company {
namespace {

using core::first_epoch;

const core::Error kRankGone{core::ErrorCode::kPeerLost, "killed"};

std::vector<std::string> rank_names(const std::vector<PlacedRole>& roles) {
  std::vector<std::string> all;
  for (const PlacedRole& role : roles)
    all.push_back(role.name + " at " + role.node);
  return all;
}
using RankNames = std::vector<std::string>;

// A gang of three: two ranks of this host, and one that any node may run.
class RoleGangs : public ::testing::Test {
 protected:
  explicit RoleGangs(std::uint64_t generation = 0) : placement_(generation) {
    placement_.want_rank("policy", "policy/0", "node/policy");
    placement_.want_rank("policy", "policy/1", "node/policy-1");
    placement_.want_rank("policy", "policy/2", "");
    come("node/policy");
    come("node/policy-1");
  }
  void come(const std::string& node) { placement_.node_in(node, {"policy"}); }
  // All ranks come up; returns their epoch.
  std::uint64_t all_up(std::int64_t now) {
    const auto due = placement_.start_due(at(now));
    EXPECT_EQ(due.size(), 3u);
    for (const PlacedRole& rank : due)
      EXPECT_TRUE(placement_.up(rank.name, rank.epoch));
    return due.empty() ? 0 : due.front().epoch;
  }
  // The ranks that must be taken down now, with the cause.
  RankNames broken(std::int64_t now) {
    RankNames all;
    for (const auto& one : placement_.break_up(at(now)))
      all.push_back(one.rank.name + ": " + one.cause.message);
    return all;
  }
  bool down(const std::string& name, std::uint64_t epoch, std::int64_t now) {
    return placement_.lost(name, epoch, kRankGone, at(now));
  }

  // The gang, with all ranks up, loses the far node and starts with the others; returns when.
  std::int64_t goes_on_short(std::int64_t now) {
    const std::uint64_t epoch = placement_.find("policy/0")->epoch;
    placement_.node_out("node/far", kRankGone, at(now));
    EXPECT_EQ(broken(now).size(), 2u);
    EXPECT_TRUE(down("policy/0", epoch, now) && down("policy/1", epoch, now));
    EXPECT_TRUE(placement_.start_due(at(now + 1'000)).empty());
    now += 1'000 + std::chrono::milliseconds(limits::kGangWait).count();
    const auto due = placement_.start_due(at(now));
    EXPECT_EQ(due.size(), 2u);
    for (const PlacedRole& rank : due)
      EXPECT_TRUE(placement_.up(rank.name, rank.epoch));
    return now;
  }
  // The run's roles are stopped and started, as between two sessions.
  void all_start_again(std::int64_t now) {
    for (const char* const rank : {"policy/0", "policy/1", "policy/2"})
      placement_.retire(rank);
    EXPECT_EQ(placement_.roomy(at(now)), "");
    all_up(now);
  }

  RolePlacement placement_;
};

TEST_F(RoleGangs, StartTogetherOnceEachRankHasANodeOfItsOwn) {
  EXPECT_TRUE(placement_.start_due(at(0)).empty()) << "no node is left for rank 2";
  come("node/far");
  const auto due = placement_.start_due(at(0));
  EXPECT_EQ(rank_names(due), (RankNames{"policy/0 at node/policy", "policy/1 at node/policy-1",
                                        "policy/2 at node/far"}));
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(due[rank].rank, rank);
    EXPECT_EQ(due[rank].ranks, 3u);
    EXPECT_EQ(due[rank].epoch, due[0].epoch);
  }
  ASSERT_TRUE(placement_.up("policy/0", due[0].epoch));
  ASSERT_TRUE(placement_.up("policy/1", due[0].epoch));
  EXPECT_FALSE(placement_.all_up("policy"));
  ASSERT_TRUE(placement_.up("policy/2", due[0].epoch));
  EXPECT_TRUE(placement_.all_up("policy"));
  EXPECT_TRUE(broken(0).empty()) << "it is whole";
}

TEST_F(RoleGangs, ALostRankTakesTheOthersDownAndAllStartAgainWithOneEpoch) {
  come("node/far");
  const std::uint64_t first = all_up(0);
  ASSERT_TRUE(down("policy/1", first, 1'000));
  EXPECT_EQ(broken(1'000), (RankNames{"policy/0: policy/1 is gone: killed",
                                      "policy/2: policy/1 is gone: killed"}));
  EXPECT_TRUE(broken(1'000).empty()) << "they are told once";
  EXPECT_TRUE(placement_.start_due(at(5'000)).empty()) << "the others are still there";
  ASSERT_TRUE(down("policy/0", first, 5'000));
  EXPECT_TRUE(placement_.start_due(at(5'000)).empty());
  ASSERT_TRUE(down("policy/2", first, 5'000));
  EXPECT_EQ(all_up(5'000), first + 1);
  EXPECT_EQ(placement_.find("policy/1")->losses.size(), 1u);
  EXPECT_TRUE(placement_.find("policy/0")->losses.empty()) << "it was not lost, only taken down";
  EXPECT_FALSE(down("policy/1", first, 6'000)) << "news of the earlier start";
  EXPECT_TRUE(broken(6'000).empty());
}

TEST_F(RoleGangs, ARankThatCannotStartTakesThoseDownThatAreStarting) {
  come("node/far");
  const auto due = placement_.start_due(at(0));
  ASSERT_TRUE(placement_.up("policy/0", due[0].epoch));
  ASSERT_TRUE(down("policy/2", due[0].epoch, 10));
  EXPECT_EQ(broken(10).size(), 2u);
  EXPECT_FALSE(placement_.up("policy/1", due[0].epoch)) << "it is being stopped";
}

TEST_F(RoleGangs, ARankThatIsTakenDownAsSickOrMovedTakesTheOthersWithIt) {
  come("node/far");
  const std::uint64_t first = all_up(0);
  ASSERT_TRUE(
      placement_.move("policy/2", first, {core::ErrorCode::kClosed, "its node is drained"}));
  EXPECT_EQ(broken(0), (RankNames{"policy/0: policy/2 is gone: its node is drained",
                                  "policy/1: policy/2 is gone: its node is drained"}));
}

TEST_F(RoleGangs, TheBackOffIsThatOfTheRankThatWasLost) {
  come("node/far");
  std::int64_t now = 0;
  for (const std::int64_t wait : {100, 200, 400}) {
    const std::uint64_t epoch = all_up(now);
    ASSERT_TRUE(down("policy/1", epoch, now));
    ASSERT_EQ(broken(now).size(), 2u);
    ASSERT_TRUE(down("policy/0", epoch, now));
    ASSERT_TRUE(down("policy/2", epoch, now));
    EXPECT_TRUE(placement_.start_due(at(now + wait - 1)).empty()) << wait;
    now += wait;
  }
}

// Its sessions end each time, and the generator with them.
TEST_F(RoleGangs, ThatAreLostAgainAndAgainCostNoOtherRoleAnything) {
  come("node/far");
  placement_.want("generator", "generator/0", "node/generator");
  placement_.node_in("node/generator", {"generator"});
  const auto lose = [this](const std::string& struck, std::int64_t now) {
    ASSERT_EQ(placement_.start_due(at(now)).size(), 4u) << now;
    for (const auto& [name, role] : placement_.roles())
      ASSERT_TRUE(placement_.up(name, role.epoch));
    const std::uint64_t epoch = placement_.find("policy/0")->epoch;
    ASSERT_FALSE(placement_.hopeless(at(now))) << now;
    ASSERT_TRUE(down(struck, epoch, now));
    EXPECT_EQ(broken(now).size(), 2u);
    for (const PlacedRole& role : placement_.stop_all())
      ASSERT_TRUE(down(role.name, role.epoch, now));
  };
  for (std::int64_t loss = 0; loss < 12; ++loss)
    lose("policy/" + std::to_string(loss % 3), 2'500 * loss);
  EXPECT_TRUE(placement_.find("generator/0")->losses.empty());
  for (const std::int64_t now : {30'000, 36'000, 42'000, 48'000})
    lose("policy/0", now);
  const auto worn = placement_.hopeless(at(48'000));
  ASSERT_TRUE(worn);
  EXPECT_EQ(worn->name, "policy/0") << "it cannot be kept up";
}

TEST_F(RoleGangs, WithoutAHostTheGangStartsWithFewerRanksAfterAWhile) {
  EXPECT_TRUE(placement_.start_due(at(1'000'000)).empty()) << "it was never whole: it waits";
  come("node/far");
  const std::uint64_t first = all_up(1'000'000);
  EXPECT_EQ(placement_.node_out("node/far", kRankGone, at(1'001'000)), RankNames{"policy/2"});
  ASSERT_EQ(broken(1'001'000).size(), 2u);
  ASSERT_TRUE(down("policy/0", first, 1'001'000));
  ASSERT_TRUE(down("policy/1", first, 1'001'000));
  const std::int64_t wait = std::chrono::milliseconds(limits::kGangWait).count();
  EXPECT_TRUE(placement_.start_due(at(1'002'000)).empty());
  EXPECT_TRUE(placement_.start_due(at(1'002'000 + wait - 1)).empty());
  const auto due = placement_.start_due(at(1'002'000 + wait));
  EXPECT_EQ(rank_names(due), (RankNames{"policy/0 at node/policy", "policy/1 at node/policy-1"}));
  EXPECT_EQ(due.front().ranks, 2u);
  EXPECT_EQ(due.front().epoch, first + 1);
  ASSERT_TRUE(placement_.up("policy/0", first + 1));
  ASSERT_TRUE(placement_.up("policy/1", first + 1));
  EXPECT_TRUE(placement_.all_up("policy")) << "rank 2 is not part of this start";
  come("node/far");
  EXPECT_TRUE(broken(1'030'000).empty()) << "it grows at the next start, not before";
  EXPECT_TRUE(placement_.start_due(at(1'030'000)).empty());
  ASSERT_TRUE(down("policy/1", first + 1, 1'040'000));
  ASSERT_EQ(broken(1'040'000).size(), 1u);
  ASSERT_TRUE(down("policy/0", first + 1, 1'040'000));
  EXPECT_EQ(all_up(1'041'000), first + 2);
}

TEST_F(RoleGangs, TheyHaveRoomOnceEachOtherRankHasHadANodeForAWhile) {
  come("node/far");
  all_up(0);
  EXPECT_EQ(placement_.roomy(at(0)), "") << "it has all of its ranks";
  std::int64_t now = goes_on_short(1'000);
  const std::int64_t room = std::chrono::milliseconds(limits::kGangRoom_min).count();
  EXPECT_EQ(placement_.roomy(at(now + 100'000)), "") << "there is no node";
  now += 100'000;
  come("node/far");
  EXPECT_EQ(placement_.roomy(at(now)), "");
  EXPECT_EQ(placement_.roomy(at(now + room - 1)), "");
  EXPECT_EQ(placement_.roomy(at(now + room)), "policy");
  placement_.node_out("node/far", kRankGone, at(now + room));
  EXPECT_EQ(placement_.roomy(at(now + room)), "");
  come("node/far");
  EXPECT_EQ(placement_.roomy(at(now + room)), "") << "it came back: the time begins anew";
  EXPECT_EQ(placement_.roomy(at(now + 2 * room)), "policy");
  EXPECT_TRUE(broken(now + 2 * room).empty()) << "it works until the run starts it again";
  placement_.stop("policy/1", placement_.find("policy/1")->epoch, kRankGone);
  EXPECT_EQ(placement_.roomy(at(now + 2 * room)), "") << "it is being taken down anyway";
}

TEST_F(RoleGangs, AHostThatComesAndGoesHasToStayLongerEachTime) {
  const std::int64_t least = std::chrono::milliseconds(limits::kGangRoom_min).count();
  const std::int64_t most = std::chrono::milliseconds(limits::kGangRoom_max).count();
  come("node/far");
  all_up(0);
  std::int64_t now = 0;
  const auto room_after_a_loss = [&] {
    now = goes_on_short(now);
    come("node/far");
    EXPECT_EQ(placement_.roomy(at(now)), "");
    std::int64_t room = least;
    while (placement_.roomy(at(now + room)).empty())
      room += least;
    now += room;
    all_start_again(now);
    return room;
  };
  for (const std::int64_t room : {least, 2 * least, 4 * least, 8 * least})
    EXPECT_EQ(room_after_a_loss(), room);
  for (int again = 0; again < 8; ++again)
    room_after_a_loss();
  EXPECT_EQ(room_after_a_loss(), most);
  now += std::chrono::milliseconds(limits::kGangRoom_forget).count();
  EXPECT_EQ(room_after_a_loss(), least) << "that was long ago";
}

TEST_F(RoleGangs, ANodeThatComesBackInTimeIsWaitedFor) {
  come("node/far");
  const std::uint64_t first = all_up(0);
  placement_.node_out("node/far", kRankGone, at(0));
  ASSERT_EQ(broken(0).size(), 2u);
  ASSERT_TRUE(down("policy/0", first, 0));
  ASSERT_TRUE(down("policy/1", first, 0));
  EXPECT_TRUE(placement_.start_due(at(1'000)).empty());
  come("node/far");
  EXPECT_EQ(all_up(9'000), first + 1);
}

TEST_F(RoleGangs, ARankOfThisHostIsAlwaysWaitedFor) {
  come("node/far");
  const std::uint64_t first = all_up(0);
  placement_.node_out("node/policy-1", kRankGone, at(0));
  ASSERT_EQ(broken(0).size(), 2u);
  ASSERT_TRUE(down("policy/0", first, 0));
  ASSERT_TRUE(down("policy/2", first, 0));
  EXPECT_TRUE(placement_.start_due(at(1'000)).empty());
  EXPECT_TRUE(placement_.start_due(at(1'000'000)).empty());
}

class RoleGangsOfTheNextHead : public RoleGangs {
 protected:
  RoleGangsOfTheNextHead() : RoleGangs(2) {}
  static constexpr std::uint64_t kOld = first_epoch(1) + 4;
};

TEST_F(RoleGangsOfTheNextHead, AreTakenOverWhole) {
  RolePlacement placement(2);
  placement.want_rank("policy", "policy/0", "node/policy");
  placement.want_rank("policy", "policy/1", "node/policy-1");
  ASSERT_TRUE(placement.adopt("policy/0", "node/policy", kOld));
  placement.node_in("node/policy", {"policy"});
  EXPECT_TRUE(placement.break_up(at(0)).empty()) << "the other may still come";
  EXPECT_TRUE(placement.start_due(at(0)).empty());
  ASSERT_TRUE(placement.adopt("policy/1", "node/policy-1", kOld));
  placement.node_in("node/policy-1", {"policy"});
  EXPECT_TRUE(placement.break_up(at(0)).empty());
  EXPECT_TRUE(placement.up("policy/0", kOld));
  EXPECT_TRUE(placement.up("policy/1", kOld));
  EXPECT_TRUE(placement.all_up("policy"));
}

TEST_F(RoleGangsOfTheNextHead, AreTakenDownWhenARankComesWithoutItsRole) {
  ASSERT_TRUE(placement_.adopt("policy/2", "node/far", kOld));
  come("node/far");
  EXPECT_EQ(broken(0), (RankNames{"policy/2: policy/0 did not outlive the last head"}));
  ASSERT_TRUE(down("policy/2", kOld, 0));
  EXPECT_EQ(all_up(100), first_epoch(2) + 1);
}

TEST_F(RoleGangsOfTheNextHead, DoNotWaitForAHostThatStaysAway) {
  ASSERT_TRUE(placement_.adopt("policy/0", "node/policy", kOld));
  ASSERT_TRUE(placement_.adopt("policy/1", "node/policy-1", kOld));
  EXPECT_TRUE(broken(0).empty()) << "rank 2 may still come";
  const std::int64_t wait = std::chrono::milliseconds(limits::kGangWait).count();
  EXPECT_TRUE(broken(wait - 1).empty());
  EXPECT_EQ(broken(wait), (RankNames{"policy/0: policy/2 did not outlive the last head",
                                     "policy/1: policy/2 did not outlive the last head"}));
  ASSERT_TRUE(down("policy/0", kOld, wait));
  ASSERT_TRUE(down("policy/1", kOld, wait));
  EXPECT_TRUE(placement_.start_due(at(wait)).empty());
  const auto due = placement_.start_due(at(2 * wait));
  ASSERT_EQ(due.size(), 2u);
  EXPECT_EQ(due.front().ranks, 2u);
}

TEST_F(RoleGangsOfTheNextHead, TakeNoRankOfAnotherStart) {
  ASSERT_TRUE(placement_.adopt("policy/0", "node/policy", kOld));
  EXPECT_FALSE(placement_.adopt("policy/1", "node/policy-1", kOld - 1));
  EXPECT_FALSE(placement_.adopt("policy/1", "node/policy-1", kOld + 1));
  EXPECT_TRUE(placement_.adopt("policy/1", "node/policy-1", kOld));
}

}  // namespace
}  // namespace troupe::actors::company
