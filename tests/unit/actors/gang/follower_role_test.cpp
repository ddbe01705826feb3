// A rank that follows: it works for rank 0 and answers nobody, outlives errors that all ranks know
// of, and can be stopped whatever it waits for.
#include "actors/gang/follower_role.hpp"

#include "actors/gang/leading_trainers.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/cluster/loopback/loopback.hpp"
#include "tests/unit/actors/gang/gang_threads.hpp"
#include "tests/unit/actors/gang/recording_trainer.hpp"
#include "tests/unit/actors/host_support.hpp"

#include <gtest/gtest.h>

#include <future>

namespace troupe::actors::testing {
namespace {

class FollowerRoleTest : public ::testing::Test {
 protected:
  FollowerRoleTest() : network_(timers_), ranks_(connected(2)) {
    auto endpoint = network_.join({"policy/1", core::RunId{9}, 1}, io_.make_strand());
    host_ = std::make_unique<cluster::RoleHost>(std::move(*endpoint), cluster::RoleHost::Hooks{},
                                                &device_);
    cluster::RoleHost::Factory factory =
        [this](
            const cluster::RoleServices& services) -> core::Result<std::unique_ptr<cluster::Role>> {
      auto role = std::make_unique<gang::FollowerRole>(
          context_of(services),
          gang::obeying(std::make_shared<RecordingTrainer>(calls_),
                        std::make_shared<RecordingPublisher>(calls_)),
          std::make_shared<gang::CollectiveLink>(ranks_[1]),
          [this](const std::string& text) { notes_.push_back(text); });
      return std::unique_ptr<cluster::Role>(std::move(role));
    };
    io_.run(start_host(host_.get(), std::move(factory)));
    leader_ = gang::leading_policy(std::make_unique<RecordingTrainer>(own_),
                                   std::make_shared<gang::CollectiveLink>(ranks_[0]));
  }
  void stop() {
    if (!host_) return;
    ranks_[1]->abort();  // as the node does before it stops a role
    io_.run(host_->stop());
    host_.reset();
    ranks_[1].reset();  // nobody else holds it
  }
  ~FollowerRoleTest() override {
    stop();
    leader_.reset();
    ranks_.clear();
    device_.close();
    io_.join();
  }
  std::string state() {
    std::promise<std::string> state;
    host_->report_to([&state](wire::RoleReport report) { state.set_value(report.state); });
    return state.get_future().get();
  }

  async::SteadyTimers timers_;
  async::DeviceThread device_{"compute"};
  async::IoThreads io_{1};
  cluster::LoopbackNetwork network_;
  std::vector<Ranks> ranks_;
  Calls calls_, own_;
  std::vector<std::string> notes_;
  std::unique_ptr<cluster::RoleHost> host_;
  std::unique_ptr<learn::PolicyTrainer> leader_;
};

TEST_F(FollowerRoleTest, DoesWhatRankZeroDoes) {
  ASSERT_TRUE(leader_->learn());
  ASSERT_TRUE(leader_->save_state("/a"));
  EXPECT_EQ(calls_.made(), own_.made());
}

TEST_F(FollowerRoleTest, GoesOnAfterAnErrorAndSaysIt) {
  calls_.fail_at("save_state /a", {core::ErrorCode::kNoRoom, "no room"});
  EXPECT_FALSE(leader_->save_state("/a"));
  ASSERT_TRUE(leader_->learn());
  stop();  // it may say behind it that its ranks were aborted
  ASSERT_FALSE(notes_.empty());
  EXPECT_EQ(notes_.front(), "policy/1: no room");
}

TEST_F(FollowerRoleTest, IsStoppedWhileItWaitsForRankZero) {
  stop();  // or the test would not end
  EXPECT_EQ(leader_->learn().error().code, core::ErrorCode::kPeerLost);
}

TEST_F(FollowerRoleTest, StandsByWhenItsGangIsOver) {
  ASSERT_TRUE(leader_->learn());
  ranks_[0]->abort();
  EXPECT_FALSE(leader_->learn());
  leader_.reset();
  ranks_[0].reset();
  while (state() != "its gang is over") {
  }
  stop();
  EXPECT_EQ(calls_.made(), std::vector<std::string>{"learn"});
}

}  // namespace
}  // namespace troupe::actors::testing
