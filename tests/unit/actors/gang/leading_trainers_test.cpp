// What rank 0's trainer is asked for, all ranks do, in the same order and with the same arguments;
// and all know how it went.
#include "actors/gang/leading_trainers.hpp"

#include "actors/gang/follower_role.hpp"
#include "actors/protocol/weight_offer.hpp"
#include "tests/unit/actors/gang/gang_threads.hpp"
#include "tests/unit/actors/gang/recording_trainer.hpp"
#include "tests/unit/actors/supervised/noting_trainer.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::testing {
namespace {

using core::ErrorCode;
using Made = std::vector<std::string>;

std::vector<experience::Group> some_groups() {
  experience::Group group;
  group.ticket = {1, 0, 0};
  group.prompt = {5, 6};
  experience::Trajectory sample;
  sample.tokens = {7};
  sample.behaviour = {-0.5f};
  sample.versions.add(0, 1);
  group.samples = {sample};
  return {group};
}

// A gang of three; ranks 1 and 2 obey on threads until the gang is over.
class LeadingTrainers : public ::testing::Test {
 protected:
  LeadingTrainers() : ranks_(connected(3)) {
    const auto gang = std::make_shared<gang::CollectiveLink>(ranks_[0]);
    leader_ = gang::leading_policy(std::make_unique<RecordingTrainer>(calls_[0]), gang);
    publisher_ = gang::leading_publisher(std::make_unique<RecordingPublisher>(calls_[0]), gang);
    for (std::size_t rank : {1u, 2u}) {
      followers_.emplace_back([this, rank,
                               link = std::make_shared<gang::CollectiveLink>(ranks_[rank])] {
        const gang::Obey obey = gang::obeying(std::make_shared<RecordingTrainer>(calls_[rank]),
                                              std::make_shared<RecordingPublisher>(calls_[rank]));
        for (;;) {
          const auto heard = link->hear();
          if (!heard) break;
          auto command = gang::command_of(*heard);
          bool together = true;
          const auto mine = before_agreeing(rank, obey(std::move(*command)));
          static_cast<void>(link->agree(mine, &together));
          if (!together) break;
        }
      });
    }
  }
  ~LeadingTrainers() override {
    ranks_[0]->abort(), publisher_.reset(), leader_.reset(), ranks_.clear();
  }

  // What happens at a rank between its work and the agreement.
  virtual core::Result<void> before_agreeing(std::size_t, core::Result<void> mine) { return mine; }

  Calls calls_[3];
  std::vector<Ranks> ranks_;
  std::shared_ptr<learn::PolicyTrainer> leader_;
  std::unique_ptr<weights::WeightPublisher> publisher_;
  std::vector<std::jthread> followers_;
};

TEST_F(LeadingTrainers, HaveAllRanksDoTheSame) {
  ASSERT_TRUE(leader_->prepare(some_groups()));
  const auto learned = leader_->learn();
  ASSERT_TRUE(learned);
  EXPECT_EQ(learned->version, 1u);
  ASSERT_TRUE(publisher_->publish(offer_of(leader_)));
  ASSERT_TRUE(publisher_->publish(offer_of(leader_))) << "it is published already";
  ASSERT_TRUE(leader_->save_state("/a"));
  ASSERT_TRUE(leader_->save_model("/b", "/c"));
  ASSERT_TRUE(leader_->load_state("/d"));
  const Made made = calls_[0].made();
  ASSERT_EQ(made.size(), 7u);
  EXPECT_EQ(made[1], "learn");
  EXPECT_EQ(made[2], "publish 1");
  EXPECT_EQ(made[3], "each_part") << "which all ranks call within that";
  EXPECT_EQ(made[4], "save_state /a");
  EXPECT_EQ(made[5], "save_model /b /c");
  EXPECT_EQ(calls_[1].made(), made);
  EXPECT_EQ(calls_[2].made(), made);
}

TEST_F(LeadingTrainers, AnErrorThatAllRanksHaveIsThatOfRankZeroAndEndsNothing) {
  for (Calls& calls : calls_)
    calls.fail_at("learn", {ErrorCode::kNumeric, "NaN"});
  const auto learned = leader_->learn();
  ASSERT_FALSE(learned);
  EXPECT_EQ(learned.error().code, ErrorCode::kNumeric);
  EXPECT_TRUE(leader_->save_state("/a")) << "the ranks are still together";
}

TEST_F(LeadingTrainers, AnErrorOfAnotherRankIsReportedWithItsNumber) {
  calls_[2].fail_at("save_state /a", {ErrorCode::kNoRoom, "no room"});
  const auto saved = leader_->save_state("/a");
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().code, ErrorCode::kNoRoom);
  EXPECT_EQ(saved.error().message, "rank 2: no room");
  EXPECT_TRUE(leader_->save_state("/b"));
}

TEST_F(LeadingTrainers, TheCauseCountsBeforeWhatFollowsFromIt) {
  calls_[0].fail_at("load_state /a", {ErrorCode::kPeerLost, "rank 2 cannot"});
  calls_[2].fail_at("load_state /a", {ErrorCode::kNotFound, "no folder /a"});
  const auto loaded = leader_->load_state("/a");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(loaded.error().message, "rank 2: no folder /a");
}

TEST_F(LeadingTrainers, ARankThatIsGoneIsALossForWhoeverAsks) {
  ASSERT_TRUE(leader_->learn());
  ranks_[1]->abort();
  const auto learned = leader_->learn();
  ASSERT_FALSE(learned);
  EXPECT_EQ(learned.error().code, ErrorCode::kPeerLost) << learned.error().message;
  EXPECT_EQ(leader_->save_state("/a").error().code, ErrorCode::kPeerLost);
}

TEST(LeadingSupervised, GivesAllRanksTheSameRows) {
  Calls calls[2];
  auto ranks = connected(2);
  std::jthread follower([&, link = std::make_shared<gang::CollectiveLink>(ranks[1])] {
    const gang::Obey obey = gang::obeying(std::make_shared<NotingTrainer>(calls[1]));
    while (auto heard = link->hear()) {
      auto command = gang::command_of(*heard);
      ASSERT_TRUE(command);
      static_cast<void>(link->agree(obey(std::move(*command))));
    }
  });
  std::vector<troupe::data::TokenRow> rows(3);
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i].answer = {static_cast<std::int32_t>(i), 5};
  const auto data = troupe::data::SupervisedDataset::of_tokens(rows);
  auto leader = gang::leading_supervised(std::make_unique<NotingTrainer>(calls[0]),
                                         std::make_shared<gang::CollectiveLink>(ranks[0]));
  const std::vector<std::uint64_t> indices = {2, 0};
  const auto step = leader->step(data.rows(indices));
  ASSERT_TRUE(step);
  EXPECT_EQ(step->version, 1u);
  ASSERT_TRUE(leader->evaluate(data.all()));
  leader->set_score_scale(1, 2);
  ASSERT_TRUE(leader->save_model("/a", "/b"));
  EXPECT_EQ(calls[1].made(),
            (Made{"step 2:2l2 0:0l2", "evaluate 0:0l2 1:1l2 2:2l2", "save_model /a"}));
  EXPECT_EQ(calls[0].made().size(), 4u) << "and the scale, which rank 0 alone has";
  ranks[0]->abort();
  leader.reset();
  ranks.clear();
}

class StrayingRank : public LeadingTrainers {
 protected:
  core::Result<void> before_agreeing(std::size_t rank, core::Result<void> mine) override {
    if (rank == 1) static_cast<void>(ranks_[1]->barrier());  // what no other rank does
    return mine;
  }
};

TEST_F(StrayingRank, IsAnErrorThatIsNoLoss) {
  const auto learned = leader_->learn();
  ASSERT_FALSE(learned);
  EXPECT_EQ(learned.error().code, ErrorCode::kInternal) << learned.error().message;
}

}  // namespace
}  // namespace troupe::actors::testing
