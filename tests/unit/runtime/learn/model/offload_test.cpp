// Devices that do not hold all of a trainer: master weights and moments in host memory
// (train.offload), and weights that ranks have divided (stage 3). The bits are those of the host,
// and a memory is enough that is too small for the rest.
#include "runtime/model/part_room.hpp"
#include "tests/unit/runtime/learn/ranks/rank_runs.hpp"
#include "tests/unit/runtime/model/device_team.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

namespace troupe::learn {
namespace {

TrainerSettings settings_of(const Ranks& ranks, bool offload, std::int64_t lanes) {
  TrainerSettings settings;
  settings.optim.adam.lr = 1e-2;
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
    leavings.files = troupe::test::joined_state(folder.path());
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
    found.files = troupe::test::joined_state(folder.path());
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
  EXPECT_TRUE(troupe::test::joined_state(folder.path()) == expected.files) << stage << offload;
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

// Weights are most of what it needs.
model::ModelSpec heavy_spec() {
  model::ModelSpec spec = tiny_spec(false);
  spec.layers = 6;
  spec.hidden = 64;
  spec.head_dim = 16;
  spec.ffn = 128;
  return spec;
}

// Whether there is room for an update.
bool updates(const TrainerSettings& settings,
             const std::vector<experience::Group>& groups,
             core::TeamRunner& team) {
  try {
    auto made = PolicyTrainer::create(test::start_weights(heavy_spec()), settings, team);
    EXPECT_TRUE(made) << made.error().message;
    const auto updated = (*made)->update(groups);
    const bool lost = !updated && updated.error().code == core::ErrorCode::kPeerLost;
    EXPECT_TRUE(updated || lost) << updated.error().message;  // lost: the other rank has no room
    return updated.has_value();
  } catch (const core::OutOfMemory&) {
    return false;
  }
}

// What the ranks need of devices that have `limit` bytes each, the one that needs most; nothing if
// that is too little for any of them.
std::optional<std::size_t> needs(int ranks, int stage, bool offload, std::size_t limit) {
  const auto start = test::start_weights(heavy_spec());
  model::PackedWeights packed(start->spec());
  packed.fill({}, *start, 0);
  const auto groups = random_groups(packed, 0, 2, 2);
  std::vector<std::size_t> most(static_cast<std::size_t>(ranks), 0);
  const auto run = [&](const Ranks& in, int rank) {
    model::ArenaTeam team;
    team.memory().set_limit(limit);
    if (updates(settings_of(in, offload, 2), groups, team))
      most[static_cast<std::size_t>(rank)] = team.memory().most();
  };
  if (ranks == 1) {
    run({}, 0);
  } else {
    test::run_ranks(ranks, [&](collective::Collectives& gang) {
      run({&gang, stage}, gang.rank());
    });
  }
  if (*std::min_element(most.begin(), most.end()) == 0) return std::nullopt;
  return *std::max_element(most.begin(), most.end());
}

TEST(Offload, FitsWhereMasterWeightsAndMomentsDoNot) {
  const std::int64_t weights = model::ParamStore(heavy_spec()).size() * 4;
  const auto part = static_cast<std::int64_t>(
      model::PartRoom(heavy_spec(), model::ParamLayout(heavy_spec()), 16).layout()->total * 4);
  const std::size_t all = model::ArenaMemory::kSize;
  struct Case {
    int ranks, stage;
    std::int64_t saved;  // master weights and moments, for room for a part
  };
  for (const Case& one : {Case{1, 0, 3 * weights - part}, Case{2, 0, 3 * weights - part},
                          Case{2, 2, 2 * weights - part}, Case{2, 3, 3 * weights / 2}}) {
    const auto without = needs(one.ranks, one.stage, false, all);
    const auto with = needs(one.ranks, one.stage, true, all);
    ASSERT_TRUE(without && with);
    const std::int64_t saved =
        static_cast<std::int64_t>(*without) - static_cast<std::int64_t>(*with);
    EXPECT_GE(saved, one.saved * 9 / 10) << one.ranks << one.stage;
    EXPECT_TRUE(needs(one.ranks, one.stage, true, *with));
    EXPECT_FALSE(needs(one.ranks, one.stage, false, *with));
  }
}

TEST(Offload, DividedWeightsFitWhereWholeOnesDoNot) {
  const std::size_t all = model::ArenaMemory::kSize;
  const auto divided = needs(2, 3, false, all), whole = needs(2, 2, false, all);
  ASSERT_TRUE(divided && whole);
  EXPECT_LT(*divided, *whole);
  EXPECT_TRUE(needs(2, 3, false, *divided));
  EXPECT_FALSE(needs(2, 2, false, *divided));
}

}  // namespace
}  // namespace troupe::learn
