// Moments in host memory: the bits of a device that has its own, alone and on ranks, and the memory
// of the device without them.
#include "tests/unit/runtime/learn/ranks/rank_runs.hpp"
#include "tests/unit/runtime/model/device_team.hpp"

#include <gtest/gtest.h>

namespace troupe::learn {
namespace {

// A team with a memory of its own, which counts what is taken of it.
class CountedDevice final : public core::TeamRunner, core::Memory {
 public:
  void run(const std::function<void(core::Team)>& region) override { region(core::Team{}); }
  int size() const noexcept override { return 1; }
  core::Memory& memory() noexcept override { return *this; }
  std::int64_t taken() const { return taken_; }

 private:
  void* allocate(std::size_t bytes) override {
    taken_ += static_cast<std::int64_t>(bytes);
    return core::host_memory().allocate(bytes);
  }
  void release(void* memory, std::size_t bytes) noexcept override {
    taken_ -= static_cast<std::int64_t>(bytes);
    core::host_memory().release(memory, bytes);
  }
  void upload(void* to, const void* from, std::size_t bytes) override {
    core::host_memory().upload(to, from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    core::host_memory().download(to, from, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    core::host_memory().copy(to, from, bytes);
  }
  bool on_host() const noexcept override { return true; }

  std::int64_t taken_ = 0;
};

TrainerSettings offloaded(const Ranks& ranks, bool offload) {
  TrainerSettings settings;
  settings.optim.lr = 1e-2;
  settings.optim.lanes = 4;
  settings.optim.ranks = ranks;
  settings.optim.offload = offload;
  settings.batch.micro_tokens_max = 64;
  settings.total_steps = 12;
  return settings;
}

// Two updates, the second after a restart from a state.
test::Leavings two_updates(const TrainerSettings& settings,
                           core::TeamRunner& team,
                           const std::filesystem::path& folder) {
  test::Leavings out;
  core::SerialTeam host;
  const auto start = test::start_weights(tiny_spec());
  model::PackedWeights packed(start->spec());
  host.run([&](core::Team member) { packed.fill(member, *start, 0); });
  for (std::uint64_t update = 0; update < 2; ++update) {
    auto made = PolicyTrainer::create(test::start_weights(tiny_spec()), settings, team);
    EXPECT_TRUE(made) << made.error().message;
    if (update > 0) {
      EXPECT_TRUE((*made)->load_state(folder));
    }
    const auto report = (*made)->update(random_groups(packed, update, 6, 4));
    EXPECT_TRUE(report) << report.error().message;
    test::append(out.figures, report->metrics);
    EXPECT_TRUE((*made)->save_state(folder));
    EXPECT_TRUE((*made)->gather());
    out.weights = model::numbers_of((*made)->master());
  }
  return out;
}

TEST(Offload, ADeviceHasTheBitsOfTheHost) {
  std::string why;
  const auto device = model::make_device_team(why);
  if (device == nullptr) GTEST_SKIP() << why;
  core::SerialTeam host;
  const troupe::test::TempFolder on_host, on_device;
  test::Leavings expected = two_updates(offloaded({}, false), host, on_host.path());
  test::Leavings found = two_updates(offloaded({}, true), *device, on_device.path());
  expected.files = troupe::test::joined_state(on_host.path());
  found.files = troupe::test::joined_state(on_device.path());
  EXPECT_TRUE(found == expected);
}

TEST(Offload, RanksHaveTheBitsOfTheHost) {
  core::SerialTeam host;
  const troupe::test::TempFolder alone;
  const test::Leavings expected = two_updates(offloaded({}, false), host, alone.path());
  for (const int stage : {0, 2, 3}) {
    const troupe::test::TempFolder folder;
    test::run_ranks(2, [&](collective::Collectives& gang) {
      CountedDevice team;
      const auto found = two_updates(offloaded({&gang, stage}, true), team, folder.path());
      EXPECT_EQ(found.figures, expected.figures) << stage;
      EXPECT_EQ(found.weights, expected.weights) << stage;
    });
    EXPECT_TRUE(troupe::test::joined_state(folder.path()) ==
                troupe::test::joined_state(alone.path()))
        << stage;
  }
}

TEST(Offload, TheDeviceHasNoMoments) {
  const auto bytes = model::ParamStore(tiny_spec()).size() * std::int64_t{4};
  std::int64_t taken[2] = {};
  for (const bool offload : {false, true}) {
    CountedDevice team;
    const auto made =
        PolicyTrainer::create(test::start_weights(tiny_spec()), offloaded({}, offload), team);
    ASSERT_TRUE(made) << made.error().message;
    taken[offload ? 1 : 0] = team.taken();
  }
  EXPECT_EQ(taken[0] - taken[1], 2 * bytes);
}

}  // namespace
}  // namespace troupe::learn
