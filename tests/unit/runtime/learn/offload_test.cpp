// Devices that do not hold all of a trainer: master weights and moments in host memory
// (train.offload), and weights that ranks have divided (stage 3). The bits are those of the host.
#include "tests/unit/runtime/learn/ranks/rank_runs.hpp"
#include "tests/unit/runtime/model/device_team.hpp"

#include <gtest/gtest.h>

namespace troupe::learn {
namespace {

TrainerSettings settings_of(const Ranks& ranks, bool offload, std::int64_t lanes) {
  TrainerSettings settings;
  settings.optim.lr = 1e-2;
  settings.optim.lanes = lanes;
  settings.optim.ranks = ranks;
  settings.optim.offload = offload;
  settings.batch.micro_tokens_max = 64;
  settings.total_steps = 12;
  return settings;
}

// Two updates, the second after a restart from a state.
test::Leavings two_updates(const TrainerSettings& settings,
                           const model::ModelSpec& spec,
                           core::TeamRunner& team,
                           const std::filesystem::path& folder) {
  test::Leavings out;
  core::SerialTeam host;
  const auto start = test::start_weights(spec);
  model::PackedWeights packed(spec);
  host.run([&](core::Team member) { packed.fill(member, *start, 0); });
  for (std::uint64_t update = 0; update < 2; ++update) {
    auto made = PolicyTrainer::create(test::start_weights(spec), settings, team);
    EXPECT_TRUE(made) << made.error().message;
    if (update > 0) {
      EXPECT_TRUE((*made)->load_state(folder));
    }
    const auto report = (*made)->update(random_groups(packed, update, 3, 2));
    EXPECT_TRUE(report) << report.error().message;
    test::append(out.figures, report->metrics);
    EXPECT_TRUE((*made)->save_state(folder));
    EXPECT_TRUE((*made)->gather());
    out.weights = model::numbers_of((*made)->master());
  }
  return out;
}

struct Expected {
  explicit Expected(std::int64_t lanes, const model::ModelSpec& spec = tiny_spec()) {
    core::SerialTeam host;
    const troupe::test::TempFolder folder;
    leavings = two_updates(settings_of({}, false, lanes), spec, host, folder.path());
    leavings.files = test::files_of(folder.path());
  }
  test::Leavings leavings;
};

TEST(Offload, ADeviceHasTheBitsOfTheHost) {
  std::string why;
  const auto device = model::make_device_team(why);
  if (device == nullptr) GTEST_SKIP() << why;
  const troupe::test::TempFolder folder;
  for (const bool tied : {true, false}) {
    const Expected expected(4, tiny_spec(tied));
    test::Leavings found =
        two_updates(settings_of({}, true, 4), tiny_spec(tied), *device, folder.path());
    found.files = test::files_of(folder.path());
    EXPECT_TRUE(found == expected.leavings);
  }
}

// Each rank has a device of its own.
void expect_the_bits_of_the_host(const test::Leavings& expected,
                                 int stage,
                                 bool offload,
                                 std::int64_t lanes) {
  const troupe::test::TempFolder folder;
  test::run_ranks(2, [&](collective::Collectives& gang) {
    std::string why;
    const auto team = model::make_device_team(why);
    const auto found =
        two_updates(settings_of({&gang, stage}, offload, lanes), tiny_spec(), *team, folder.path());
    EXPECT_EQ(found.figures, expected.figures) << stage << offload;
    EXPECT_EQ(found.weights, expected.weights) << stage << offload;
  });
  EXPECT_TRUE(test::files_of(folder.path()) == expected.files) << stage << offload;
}

TEST(Offload, RanksOnDevicesHaveTheBitsOfTheHost) {
  std::string why;
  if (model::make_device_team(why) == nullptr) GTEST_SKIP() << why;
  const Expected expected(2);
  for (const int stage : {0, 2, 3})
    expect_the_bits_of_the_host(expected.leavings, stage, true, 2);
  expect_the_bits_of_the_host(expected.leavings, 3, false, 2);
}

// A rank that has two lanes ships whole gradients.
TEST(Offload, RanksOnDevicesMayHaveSeveralLanes) {
  std::string why;
  if (model::make_device_team(why) == nullptr) GTEST_SKIP() << why;
  const Expected expected(4);
  expect_the_bits_of_the_host(expected.leavings, 3, true, 4);
}

}  // namespace
}  // namespace troupe::learn
