// Weights that ranks have divided: what is there during a pass, and that a rank has room for one
// part of the weights and of its gradient. On the host and, where there is one, on a device.
#include "runtime/learn/ranks/sharded_weights.hpp"

#include "runtime/learn/lanes/lane_sum.hpp"
#include "runtime/learn/model/rank_gradient.hpp"
#include "runtime/model/load_elements.hpp"
#include "tests/unit/runtime/learn/fixture.hpp"
#include "tests/unit/runtime/learn/ranks/rank_runs.hpp"
#include "tests/unit/runtime/learn/ranks/resident_pages.hpp"
#include "tests/unit/runtime/model/device_team.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace troupe::learn {
namespace {

using Place = model::PartRoom::Place;
using Teams = std::function<std::unique_ptr<core::TeamRunner>()>;

// About 2 M numbers.
model::ModelSpec larger_spec() {
  model::ModelSpec spec = tiny_spec();
  spec.layers = 4;
  spec.hidden = 192;
  spec.head_dim = 48;
  spec.ffn = 512;
  return spec;
}

std::unique_ptr<core::TeamRunner> on_host() {
  return std::make_unique<core::SerialTeam>();
}

std::unique_ptr<core::TeamRunner> on_device() {
  std::string why;
  return model::make_device_team(why);
}

std::vector<float> read(core::Memory& memory, const float* from, std::int64_t count) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  memory.download(numbers.data(), from, numbers.size() * sizeof(float));
  return numbers;
}

// `offload`: a rank's blocks are on the host, whatever the team.
void expect_a_pass_to_have_each_part(const model::ModelSpec& spec,
                                     int ranks,
                                     bool offload,
                                     const Teams& make_team) {
  const auto start = test::start_weights(spec);
  test::run_ranks(ranks, [&](collective::Collectives& gang) {
    const auto team = make_team();
    core::Memory& memory = team->memory();
    RankGroup group(gang);
    model::ParamStore master = start->to(core::host_memory());
    ShardedWeights weights(group, master, kernels::PanelDtype::kF32, *team,
                           offload ? core::host_memory() : memory);
    EXPECT_FALSE(weights.whole());
    const BlockShards shards(start->size(), ranks);
    const model::PartRoom room(spec, start->layout(), ranks * BlockShards::kBlock);
    EXPECT_EQ(weights.own().size(), shards.elements(gang.rank()));
    EXPECT_EQ(weights.values().size(), room.layout()->total);
    const auto has = [&](const Place& place) {
      const core::Range range = place.tensors;
      const auto found =
          read(memory, weights.values().data() + place.of(range.begin), range.size());
      return std::equal(found.begin(), found.end(), start->data() + range.begin);
    };
    weights.begin_pass();
    EXPECT_FALSE(weights.whole());
    EXPECT_EQ(master.data()[start->size() / 2], 0.0f);  // its pages are gone
    for (std::int64_t part = 0; part < room.parts(); ++part) {
      weights.open(part, false);
      for (const Place& place : room.places(part))
        EXPECT_TRUE(has(place)) << part;
      weights.close(part, false);
    }
    // One rank stops here and walks the way back; the others compute it.
    for (std::int64_t part = room.parts() - 1; part > 0 && gang.rank() != 1; --part) {
      weights.open(part, true);
      EXPECT_TRUE(has(room.places(part).back())) << part;
      weights.close(part, true);
    }
    ASSERT_TRUE(weights.finish_pass(true));
    ASSERT_TRUE(weights.gather_all());
    EXPECT_TRUE(std::equal(start->data(), start->data() + start->size(), master.data()));
  });
}

// Of a folder a rank reads its own blocks, bit for bit; what else there is takes no memory, and is
// not looked at.
TEST(ShardedWeights, ARankReadsItsOwnBlocksOfAFolder) {
  const auto start = test::start_weights(larger_spec());
  for (const core::Range block : BlockShards::of_rank(2, 3, {0, start->size()}))
    start->data()[block.begin] = std::numeric_limits<float>::quiet_NaN();
  const troupe::test::TempFolder parent;
  const auto folder = parent.path() / "model";
  ASSERT_TRUE(model::save_model(*start, folder, model::StorageDtype::kF32, {}));
  const auto bytes = static_cast<std::size_t>(start->size()) * sizeof(float);
  for (int rank = 0; rank < 2; ++rank) {
    const auto loaded = model::load_elements(
        folder, model::HeadKind::kLanguage, 0,
        [rank](core::Range all) { return BlockShards::of_rank(rank, 3, all); });
    ASSERT_TRUE(loaded) << loaded.error().message;
    for (const core::Range block : BlockShards::of_rank(rank, 3, {0, start->size()}))
      EXPECT_EQ(std::memcmp((*loaded)->data() + block.begin, start->data() + block.begin,
                            static_cast<std::size_t>(block.size()) * sizeof(float)),
                0)
          << block.begin;
    EXPECT_LE(test::resident_pages((*loaded)->data(), bytes),
              static_cast<std::int64_t>(bytes / 4096) * 4 / 10);
  }
  EXPECT_FALSE(model::load_model(folder));
}

TEST(ShardedWeights, APassHasEachPartInTurn) {
  expect_a_pass_to_have_each_part(larger_spec(), 3, false, on_host);
  expect_a_pass_to_have_each_part(tiny_spec(false), 8, false, on_host);  // parts within a turn
}

TEST(ShardedWeights, ADevicesPassHasEachPartInTurn) {
  if (on_device() == nullptr) GTEST_SKIP() << "no device";
  for (const bool offload : {false, true})
    expect_a_pass_to_have_each_part(tiny_spec(), 2, offload, on_device);
}

// Whoever packs the weights in its own way gets each of them once, and none of it is whole.
void expect_each_part_to_be_shown(const model::ModelSpec& spec,
                                  bool offload,
                                  const Teams& make_team) {
  const auto start = test::start_weights(spec);
  test::run_ranks(3, [&](collective::Collectives& gang) {
    const auto team = make_team();
    core::Memory& memory = team->memory();
    RankGroup group(gang);
    model::ParamStore master = start->to(core::host_memory());
    ShardedWeights weights(group, master, kernels::PanelDtype::kF32, *team,
                           offload ? core::host_memory() : memory, 50'000);
    std::vector<float> seen;
    std::int64_t calls = 0;
    const auto show = [&] {
      seen.assign(static_cast<std::size_t>(master.size()), 0.0f);
      calls = 0;
      ASSERT_TRUE(weights.each_part([&](core::Range part, const float* flat) {
        ++calls;
        const auto numbers = read(memory, flat + part.begin, part.size());
        for (std::int64_t i = part.begin; i < part.end; ++i)
          seen[static_cast<std::size_t>(i)] += numbers[static_cast<std::size_t>(i - part.begin)];
      }));
      EXPECT_TRUE(std::equal(seen.begin(), seen.end(), start->data()));
    };
    ASSERT_TRUE(weights.bring_to_first([&](core::Range place, const float* numbers) {
      seen.insert(seen.end(), numbers, numbers + place.size());
    }));
    EXPECT_TRUE(group.rank() != 0 || std::equal(seen.begin(), seen.end(), start->data()));
    EXPECT_EQ(std::ssize(seen), group.rank() == 0 ? master.size() : 0);
    ASSERT_TRUE(weights.gather_all());
    EXPECT_TRUE(std::equal(start->data(), start->data() + start->size(), master.data()));
    show();
    EXPECT_EQ(calls == 1, memory.on_host()) << "they are whole on the host";
    weights.begin_pass();
    ASSERT_TRUE(weights.finish_pass(false));
    show();
    EXPECT_GT(calls, 4);
    EXPECT_FALSE(weights.whole());
  });
}

TEST(ShardedWeights, AreShownPartByPart) {
  model::ModelSpec spec = larger_spec();
  for (const bool tied : {false, true}) {
    spec.tied = tied;
    expect_each_part_to_be_shown(spec, false, on_host);
  }
}

TEST(ShardedWeights, OfADeviceAreShownPartByPart) {
  if (on_device() == nullptr) GTEST_SKIP() << "no device";
  model::ModelSpec spec = larger_spec();
  spec.hidden = 96;
  spec.head_dim = 24;
  spec.ffn = 256;
  for (const bool offload : {false, true})
    expect_each_part_to_be_shown(spec, offload, on_device);
}

// What micro-batch `micro` adds to element i.
float number(std::size_t micro, std::int64_t i) {
  return 1.0f / static_cast<float>(1 + (static_cast<std::int64_t>(micro) * 7919 + i * 31) % 1009);
}

// One lane for each rank: what a part of the way back has added is shipped before the next one, in
// room for one part; the sum is that of one process.
void expect_gradients_to_leave_on_the_way_back(const model::ModelSpec& spec,
                                               std::int64_t lanes,
                                               const Teams& make_team) {
  const auto start = test::start_weights(spec);
  const auto parts = model::ranges_of_parts(spec, start->layout());
  // In the second round the last rank has none.
  const auto micro_batches_of_all = static_cast<std::size_t>(2 * lanes - 1);
  core::SerialTeam alone;
  LaneSum whole(spec, start->shared_layout(), lanes, alone);
  whole.begin_step();
  for (std::size_t micro = 0; micro < micro_batches_of_all; ++micro) {
    whole.begin_micro_batch(true);
    for (const model::ParamView& view : start->layout().views)
      for (std::int64_t i = view.offset; i < view.offset + view.count; ++i)
        whole.working().data()[i] = number(micro, i);
  }
  whole.end_step();
  test::run_ranks(static_cast<int>(lanes), [&](collective::Collectives& gang) {
    const auto team = make_team();
    core::Memory& memory = team->memory();
    RankGroup group(gang);
    model::ParamStore master = start->to(core::host_memory());
    ShardedWeights weights(group, master, kernels::PanelDtype::kF32, *team, memory);
    RankGradient gradient(group, spec, start->shared_layout(), lanes, *team, &weights);
    const model::PartRoom room(spec, start->layout(), lanes * BlockShards::kBlock);
    EXPECT_EQ(gradient.working().size(), room.layout()->total);
    const std::vector<StepPart> micro_batches(micro_batches_of_all);
    StepParts step;
    step.parts = micro_batches;
    step.run = [&](std::size_t micro) -> core::Result<void> {
      for (std::int64_t part = 0; part < room.parts(); ++part) {
        weights.open(part, false);
        weights.close(part, false);
      }
      const auto add = [&](std::int64_t part, const model::ParamView& view) {
        for (const Place& place : room.places(part)) {
          if (view.offset < place.tensors.begin || view.offset >= place.tensors.end) continue;
          float* const at = gradient.working().data() + place.of(view.offset);
          std::vector<float> numbers = read(memory, at, view.count);
          for (std::int64_t i = 0; i < view.count; ++i)
            numbers[static_cast<std::size_t>(i)] += number(micro, view.offset + i);
          memory.upload(at, numbers.data(), numbers.size() * sizeof(float));
        }
      };
      for (std::int64_t part = room.parts() - 1; part >= 0; --part) {
        if (part > 0) weights.open(part, true);
        // An embedding that is in the last part too is added to once, at the end.
        for (const model::ParamView& view : start->layout().views)
          if (view.offset != start->layout().embedding || part == 0) add(part, view);
        if (part > 0) weights.close(part, true);
      }
      return {};
    };
    step.finite = [](std::size_t) { return true; };
    gradient.begin_step();
    const auto ran = gradient.run(step);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(*ran, micro_batches_of_all);
    const BlockShards& shards = gradient.shards();
    const auto sum = read(memory, gradient.shard(), shards.elements(gang.rank()));
    for (std::int64_t i = 0; i < std::ssize(sum); ++i) {
      ASSERT_EQ(sum[static_cast<std::size_t>(i)], whole.sum().data()[shards.place(gang.rank(), i)])
          << i;
    }
  });
}

TEST(ShardedWeights, GradientsLeaveOnTheWayBack) {
  expect_gradients_to_leave_on_the_way_back(larger_spec(), 3, on_host);
  for (const bool tied : {true, false})
    for (const std::int64_t lanes : {2, 8})  // a turn of 8 has several parts
      expect_gradients_to_leave_on_the_way_back(tiny_spec(tied), lanes, on_host);
}

TEST(ShardedWeights, ADevicesGradientsLeaveOnTheWayBack) {
  if (on_device() == nullptr) GTEST_SKIP() << "no device";
  expect_gradients_to_leave_on_the_way_back(tiny_spec(), 2, on_device);
}

}  // namespace
}  // namespace troupe::learn
