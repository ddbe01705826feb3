// The sum of a step over lanes, on numbers whose sum depends on the order: against the tree built
// level by level, on several threads, on a device, and in bounded memory.
#include "runtime/learn/lanes/lane_sum.hpp"

#include "tests/unit/runtime/learn/fixture.hpp"
#include "tests/unit/runtime/learn/lanes/level_tree.hpp"
#include "tests/unit/runtime/model/device_team.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

namespace troupe::learn {
namespace {

std::vector<std::optional<Numbers>> some_step(std::size_t size,
                                              std::size_t micro_batches,
                                              unsigned absent) {
  std::vector<std::optional<Numbers>> all(micro_batches);
  for (std::size_t i = 0; i < micro_batches; ++i) {
    if ((absent >> i & 1) == 0) all[i] = uneven_numbers(size, 31 * i + absent);
  }
  return all;
}

void put(model::ParamStore& store, const Numbers& numbers) {
  store.memory().upload(store.data(), numbers.data(), numbers.size() * sizeof(float));
}

// As a trainer does it; the numbers take the place of a backward pass.
Numbers summed(LaneSum& sum, const std::vector<std::optional<Numbers>>& micro_batches) {
  sum.begin_step();
  for (const auto& micro : micro_batches) {
    sum.begin_micro_batch(micro.has_value());
    if (!micro) continue;
    const Numbers before = model::numbers_of(sum.working());
    EXPECT_EQ(before, Numbers(before.size(), 0.0f));
    put(sum.working(), *micro);
  }
  sum.end_step();
  return model::numbers_of(sum.sum());
}

bool same(const Numbers& a, const Numbers& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

LaneSum lane_sum_of(std::int64_t lanes, core::TeamRunner& team) {
  const model::ModelSpec spec = tiny_spec();
  return {spec, std::make_shared<const model::ParamLayout>(spec), lanes, team};
}

TEST(LaneSum, IsTheTreeOfEachRoundInAscendingOrder) {
  core::SerialTeam one;
  ThreadTeam three(3);
  std::string why;
  const auto device = model::make_device_team(why);
  for (const std::int64_t lanes : {2, 3, 5, 8}) {
    LaneSum a = lane_sum_of(lanes, one), b = lane_sum_of(lanes, three);
    const auto size = static_cast<std::size_t>(a.sum().size());
    for (const unsigned absent : {0u, 0b1010u, 0b1u, 0b1110110u, 0b11111111111u}) {
      const auto step = some_step(size, 11, absent);
      const Numbers expected = gradient_of(step, static_cast<std::size_t>(lanes), size);
      EXPECT_TRUE(same(summed(a, step), expected)) << lanes << " " << absent;
      EXPECT_TRUE(same(summed(b, step), expected)) << lanes << " " << absent;
    }
    if (device == nullptr) continue;
    LaneSum there = lane_sum_of(lanes, *device);
    const auto step = some_step(size, 11, 0b100u);
    const Numbers expected = gradient_of(step, static_cast<std::size_t>(lanes), size);
    EXPECT_TRUE(same(summed(there, step), expected)) << lanes;
  }
}

// Beside 1e8 a 1 is lost.
TEST(LaneSum, IsWhatItIsByHand) {
  core::SerialTeam team;
  const auto step_of = [&](std::int64_t lanes, const std::vector<float>& numbers) {
    LaneSum sum = lane_sum_of(lanes, team);
    std::vector<std::optional<Numbers>> step;
    for (const float number : numbers)
      step.emplace_back(Numbers(static_cast<std::size_t>(sum.sum().size()), number));
    return summed(sum, step).front();
  };
  EXPECT_EQ(step_of(3, {1e8f, 1.0f, -1e8f}), 0.0f);        // (1e8 + 1) - 1e8
  EXPECT_EQ(step_of(2, {1e8f, -1e8f, 1.0f}), 1.0f);        // 0 + (1e8 - 1e8), then + 1
  EXPECT_EQ(step_of(4, {1e8f, 1.0f, -1e8f, 1.0f}), 0.0f);  // (1e8 + 1) + (-1e8 + 1)
  EXPECT_EQ(step_of(4, {1.0f, 1.0f, 1e8f, -1e8f}), 2.0f);  // (1 + 1) + (1e8 - 1e8)
}

TEST(LaneSum, AnUnfinishedStepLeavesNothing) {
  core::SerialTeam team;
  LaneSum sum = lane_sum_of(4, team);
  const auto size = static_cast<std::size_t>(sum.sum().size());
  sum.begin_step();
  for (int i = 0; i < 3; ++i) {
    sum.begin_micro_batch(true);
    put(sum.working(), Numbers(size, 7.0f));
  }
  const auto step = some_step(size, 6, 0);
  EXPECT_TRUE(same(summed(sum, step), gradient_of(step, 4, size)));
}

TEST(LaneSum, OneLaneIsAChainInOneGradient) {
  core::SerialTeam team;
  LaneSum sum = lane_sum_of(1, team);
  EXPECT_EQ(&sum.working(), &sum.sum());
  sum.begin_step();
  for (int i = 0; i < 3; ++i) {
    sum.begin_micro_batch(true);
    sum.working().data()[5] += 2.0f;  // what a backward pass does
  }
  sum.end_step();
  EXPECT_EQ(sum.sum().data()[5], 6.0f);
}

// Counts what is taken of the host's memory through it.
class CountedTeam final : public core::TeamRunner, core::Memory {
 public:
  void run(const std::function<void(core::Team)>& region) override { region(core::Team{}); }
  int size() const noexcept override { return 1; }
  core::Memory& memory() noexcept override { return *this; }
  std::uint64_t taken() const { return taken_; }

 private:
  void* allocate(std::size_t bytes) override {
    taken_ += bytes;
    return core::host_memory().allocate(bytes);
  }
  void release(void* memory, std::size_t bytes) noexcept override {
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

  std::uint64_t taken_ = 0;
};

TEST(LaneSum, TakesItsMemoryOnceAndNoMoreThanItSays) {
  const auto size = static_cast<std::size_t>(model::ParamStore(tiny_spec()).size());
  for (const auto& [lanes, gradients] : {std::pair<std::int64_t, std::uint64_t>{1, 1},
                                         {2, 3},
                                         {3, 3},
                                         {4, 4},
                                         {7, 4},
                                         {8, 5},
                                         {9, 5}}) {
    CountedTeam team;
    LaneSum sum = lane_sum_of(lanes, team);
    EXPECT_EQ(team.taken(), gradients * size * sizeof(float)) << lanes;
    if (lanes == 1) continue;
    const auto step = some_step(size, 18, 0);
    EXPECT_TRUE(same(summed(sum, step), gradient_of(step, static_cast<std::size_t>(lanes), size)));
    EXPECT_EQ(team.taken(), gradients * size * sizeof(float)) << lanes;
  }
}

}  // namespace
}  // namespace troupe::learn
