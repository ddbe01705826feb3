// Weights that ranks have divided: what is there during a pass, and that a rank keeps the pages of
// its own blocks alone.
#include "runtime/learn/ranks/sharded_weights.hpp"

#include "runtime/learn/lane_sum.hpp"
#include "runtime/learn/ranks/rank_gradient.hpp"
#include "tests/unit/runtime/learn/fixture.hpp"
#include "tests/unit/runtime/learn/ranks/rank_runs.hpp"
#include "tests/unit/runtime/learn/ranks/resident_pages.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace troupe::learn {
namespace {

// About 2 M numbers: 8 MiB, of which a block of 4,096 takes four pages.
model::ModelSpec larger_spec() {
  model::ModelSpec spec = tiny_spec();
  spec.layers = 4;
  spec.hidden = 192;
  spec.head_dim = 48;
  spec.ffn = 512;
  return spec;
}

TEST(ShardedWeights, APassHasEachPartInTurnAndARankKeepsItsBlocks) {
  const auto start = test::start_weights(larger_spec());
  test::run_ranks(3, [&](collective::Collectives& gang) {
    core::SerialTeam team;
    RankGroup group(gang);
    model::ParamStore master = start->to(core::host_memory());
    const auto bytes = static_cast<std::size_t>(master.size()) * sizeof(float);
    ShardedWeights weights(group, master, kernels::PanelDtype::kF32, team);
    EXPECT_TRUE(weights.whole());
    const auto parts = model::ranges_of_parts(master.spec(), master.layout());
    const auto has = [&](core::Range range) {
      return std::equal(master.data() + range.begin, master.data() + range.end,
                        start->data() + range.begin);
    };
    weights.begin_pass();
    EXPECT_FALSE(weights.whole());
    const std::int64_t divided = test::resident_pages(master.data(), bytes);
    EXPECT_FALSE(has(parts[1].front()));
    EXPECT_LE(divided, test::resident_pages(start->data(), bytes) * 4 / 10);
    for (std::int64_t part = 0; part < std::ssize(parts); ++part) {
      weights.open(part, false);
      for (const core::Range range : parts[static_cast<std::size_t>(part)])
        EXPECT_TRUE(has(range)) << part;
      weights.close(part, false);
    }
    EXPECT_EQ(test::resident_pages(master.data(), bytes), divided);
    // One rank stops here and walks the way back; the others compute it.
    for (std::int64_t part = std::ssize(parts) - 1; part > 0 && gang.rank() != 1; --part) {
      weights.open(part, true);
      EXPECT_TRUE(has(parts[static_cast<std::size_t>(part)].front())) << part;
      weights.close(part, true);
    }
    ASSERT_TRUE(weights.finish_pass(true));
    ASSERT_TRUE(weights.gather_all());
    EXPECT_TRUE(has({0, master.size()}));
  });
}

// Whoever packs the weights in its own way gets each of them once, and no rank has all meanwhile.
TEST(ShardedWeights, AreShownPartByPart) {
  for (const bool tied : {false, true}) {
    model::ModelSpec spec = larger_spec();
    spec.tied = tied;
    const auto start = test::start_weights(spec);
    test::run_ranks(3, [&](collective::Collectives& gang) {
      core::SerialTeam team;
      RankGroup group(gang);
      model::ParamStore master = start->to(core::host_memory());
      const auto bytes = static_cast<std::size_t>(master.size()) * sizeof(float);
      ShardedWeights weights(group, master, kernels::PanelDtype::kF32, team);
      std::vector<float> seen;
      std::int64_t most = 0, calls = 0;
      const auto show = [&] {
        seen.assign(static_cast<std::size_t>(master.size()), 0.0f);
        most = calls = 0;
        ASSERT_TRUE(weights.each_part([&](core::Range part, const float* flat) {
          ++calls;
          most = std::max(most, resident_pages(master.data(), bytes));
          for (std::int64_t i = part.begin; i < part.end; ++i)
            seen[static_cast<std::size_t>(i)] += flat[i];
        }));
        EXPECT_TRUE(std::equal(seen.begin(), seen.end(), start->data()));
      };
      show();
      EXPECT_EQ(calls, 1) << "they are whole";
      weights.begin_pass();
      ASSERT_TRUE(weights.finish_pass(false));
      show();
      EXPECT_GT(calls, 4);
      EXPECT_LE(most, resident_pages(start->data(), bytes) * 7 / 10);
      EXPECT_FALSE(weights.whole());
    });
  }
}

// One lane for each rank: what a part of the way back has added is shipped and its pages are given
// back, so that a rank never holds a whole gradient; the sum is that of one process.
TEST(ShardedWeights, GradientsLeaveOnTheWayBack) {
  const auto start = test::start_weights(larger_spec());
  const auto parts = model::ranges_of_parts(start->spec(), start->layout());
  const auto bytes = static_cast<std::size_t>(start->size()) * sizeof(float);
  // What micro-batch `micro` adds to element i.
  const auto number = [](std::size_t micro, std::int64_t i) {
    return 1.0f / static_cast<float>(1 + (static_cast<std::int64_t>(micro) * 7919 + i * 31) % 1009);
  };
  constexpr std::size_t kMicroBatches = 5;  // in the second round rank 2 has none
  core::SerialTeam alone;
  LaneSum whole(start->spec(), start->shared_layout(), 3, alone);
  whole.begin_step();
  for (std::size_t micro = 0; micro < kMicroBatches; ++micro) {
    whole.begin_micro_batch(true);
    for (const auto& ranges : parts) {
      for (const core::Range range : ranges)
        for (std::int64_t i = range.begin; i < range.end; ++i)
          whole.working().data()[i] = number(micro, i);
    }
  }
  whole.end_step();
  test::run_ranks(3, [&](collective::Collectives& gang) {
    core::SerialTeam team;
    RankGroup group(gang);
    model::ParamStore master = start->to(core::host_memory());
    ShardedWeights weights(group, master, kernels::PanelDtype::kF32, team);
    RankGradient gradient(group, start->spec(), start->shared_layout(), 3, team, &weights);
    float* const working = gradient.working().data();
    std::int64_t most = 0;
    const auto last = std::ssize(parts) - 1;
    const std::vector<StepPart> micro_batches(kMicroBatches);
    StepParts step;
    step.parts = micro_batches;
    step.run = [&](std::size_t micro) -> core::Result<void> {
      for (std::int64_t part = 0; part <= last; ++part) {
        weights.open(part, false);
        weights.close(part, false);
      }
      const auto add = [&](core::Range range) {
        for (std::int64_t i = range.begin; i < range.end; ++i)
          working[i] += number(micro, i);
      };
      for (std::int64_t part = last; part > 0; --part) {
        weights.open(part, true);
        // The embedding, which is in the last part too, is added to once, at the end.
        for (const core::Range range : parts[static_cast<std::size_t>(part)])
          if (range.begin > 0) add(range);
        most = std::max(most, test::resident_pages(working, bytes));
        weights.close(part, true);
      }
      add(parts.front().front());
      return {};
    };
    step.finite = [](std::size_t) { return true; };
    gradient.begin_step();
    const auto ran = gradient.run(step);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(*ran, kMicroBatches);
    const BlockShards& shards = gradient.shards();
    for (std::int64_t i = 0; i < shards.elements(gang.rank()); ++i) {
      ASSERT_EQ(gradient.shard()[i], whole.sum().data()[shards.place(gang.rank(), i)]) << i;
    }
    EXPECT_LE(most, static_cast<std::int64_t>(bytes / 4096) * 4 / 10);  // a layer of four, and ends
    EXPECT_LE(test::resident_pages(working, bytes), 8);
  });
}

}  // namespace
}  // namespace troupe::learn
