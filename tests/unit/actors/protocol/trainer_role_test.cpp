// What policy and critic remember for a head that goes on from an earlier checkpoint.
#include "actors/protocol/trainer_role.hpp"

#include "tests/sim/sim_device.hpp"
#include "tests/unit/runtime/cluster/support.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using cluster::testing::kSteps;
using cluster::testing::Later;

// Its version is twice the number of updates, and it counts what it loads.
class CountingTrainer {
 public:
  core::Version version() const { return version_; }
  core::Result<void> save_state(const std::filesystem::path&) const { return {}; }
  core::Result<void> save_model(const std::filesystem::path&, const std::filesystem::path&) const {
    return {};
  }
  core::Result<void> load_state(const std::filesystem::path& folder) {
    loaded.push_back(folder.string());
    version_ = 6;
    return {};
  }
  std::vector<std::string> loaded;

 private:
  core::Version version_ = 0;
};

struct Report {
  core::Version version = 0;
  std::vector<std::pair<std::string, double>> metrics;
};

class CountingRole : public TrainerRole<CountingTrainer> {
 public:
  CountingRole(RoleContext context, std::unique_ptr<CountingTrainer> trainer)
      : TrainerRole(std::move(context), std::move(trainer), "policy", "", store::system_disk()) {}
  void begin(std::uint64_t update) { begin_update(update); }
  void learn(std::uint64_t update) {
    begin_update(update);
    learned(update, Report{2 * (update + 1), {{"update", static_cast<double>(update)}}});
  }
  using TrainerRole::answered;
  using TrainerRole::version_after;
};

class TrainerRoleTest : public ::testing::Test {
 protected:
  TrainerRoleTest() : strand_(time_.make_strand()), device_(time_, time_.make_strand(), "device") {
    RoleContext context;
    context.timers = &time_;
    context.device = &device_;
    auto trainer = std::make_unique<CountingTrainer>();
    trainer_ = trainer.get();
    role_ = std::make_unique<CountingRole>(std::move(context), std::move(trainer));
  }
  core::Result<Loaded> load(const std::string& folder, std::uint64_t updates) {
    LoadState request{folder, updates};
    Later<core::Result<Loaded>> loaded(strand_, role_->on(std::move(request)));
    EXPECT_TRUE(time_.run_for(1s, kSteps));
    return loaded.value();
  }
  void save() {
    const std::string here = std::filesystem::temp_directory_path() / "troupe_trainer_role" / "x";
    std::filesystem::create_directories(here);
    SaveState request{here};
    Later<core::Result<Ack>> saved(strand_, role_->on(std::move(request)));
    EXPECT_TRUE(time_.run_for(1s, kSteps));
    EXPECT_TRUE(saved.value());
  }

  cluster::sim::VirtualTime time_;
  async::Executor strand_;
  cluster::sim::SimDevice device_;
  CountingTrainer* trainer_ = nullptr;
  std::unique_ptr<CountingRole> role_;
};

TEST_F(TrainerRoleTest, LoadsOnceAndSaysWhatItHolds) {
  const auto first = load("/ckpt", 3);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->from, 3u);
  EXPECT_EQ(first->updates, 3u);
  EXPECT_EQ(role_->version_after(3).value(), 6u);
  role_->learn(3);
  role_->learn(4);
  const auto again = load("/ckpt", 3);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->from, 3u);
  EXPECT_EQ(again->updates, 5u);
  EXPECT_EQ(trainer_->loaded, (std::vector<std::string>{"/ckpt/policy"}));
}

TEST_F(TrainerRoleTest, WithoutAFolderItIsTheInitialModel) {
  ASSERT_TRUE(load("", 0));
  EXPECT_TRUE(trainer_->loaded.empty());
  EXPECT_EQ(role_->version_after(0).value(), 0u);
}

TEST_F(TrainerRoleTest, RepeatsItsAnswersSinceTheLastButOneCheckpoint) {
  ASSERT_TRUE(load("", 0));
  role_->learn(0);
  role_->learn(1);
  save();  // after 2
  role_->learn(2);
  EXPECT_EQ(load("", 0)->from, 0u);  // that checkpoint may not have been finished
  save();                            // after 3
  role_->learn(3);
  const auto held = load("", 2);
  EXPECT_EQ(held->from, 2u);
  EXPECT_EQ(held->updates, 4u);
  EXPECT_FALSE(role_->answered(1));
  for (const std::uint64_t update : {2u, 3u}) {
    const auto answer = role_->answered(update);
    ASSERT_TRUE(answer && *answer) << update;
    EXPECT_EQ((*answer)->version, 2 * (update + 1));
    EXPECT_EQ((*answer)->metrics.front().second, static_cast<double>(update));
  }
  EXPECT_FALSE(*role_->answered(4));
  EXPECT_FALSE(role_->version_after(1));
  EXPECT_EQ(role_->version_after(2).value(), 4u);
  EXPECT_EQ(role_->version_after(4).value(), 8u);
}

TEST_F(TrainerRoleTest, HalfWayThroughAnUpdateItMustStartAgain) {
  ASSERT_TRUE(load("", 0));
  role_->learn(0);
  role_->begin(1);
  const auto loaded = load("", 0);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, core::ErrorCode::kPeerLost);
}

}  // namespace
}  // namespace troupe::actors
