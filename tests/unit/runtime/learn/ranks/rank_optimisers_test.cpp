// Every optimiser on several ranks, and through a checkpoint: rounding is drawn by an element's
// place in the model, so the number of ranks and the stage change no bit.
#include "tests/unit/runtime/learn/ranks/rank_runs.hpp"

#include <gtest/gtest.h>

#include <string>

namespace troupe::learn {
namespace {

using test::Leavings;

// Blocks of moments that several tensors share, and tensors of several blocks.
model::ModelSpec wide_spec() {
  model::ModelSpec spec = tiny_spec();
  spec.ffn = 256;
  return spec;
}

test::PolicyRun run_of(const OptimKind& kind) {
  test::PolicyRun run;
  run.spec = wide_spec();
  run.settings.optim.optim = kind;
  run.settings.optim.adam.lr = 1e-2;
  run.settings.optim.lanes = 3;
  run.settings.optim.lr_warmup_ratio = 0;
  run.settings.optim.groups = {{"norm", 1, 0.5}, {"down_proj", 0.25, {}}};
  run.settings.batch.micro_tokens_max = 64;
  run.settings.total_steps = 12;
  return run;
}

// The first figure that differs, and where.
std::string differing(const Leavings& found, const Leavings& expected) {
  if (found.figures.size() != expected.figures.size()) return "their number";
  for (std::size_t i = 0; i < found.figures.size(); ++i) {
    const auto& [name, value] = found.figures[i];
    const auto& [other, wanted] = expected.figures[i];
    if (name != other || value != wanted)
      return std::to_string(i) + " " + name + ": " + std::to_string(value) + " for " + other +
             ": " + std::to_string(wanted);
  }
  return "";
}

TEST(RankOptimisers, HaveTheBitsOfOneProcess) {
  ASSERT_GT(model::ParamLayout(wide_spec()).total, 3 * kernels::kNormChunk);
  for (const OptimKind& kind : OptimKind::all()) {
    SCOPED_TRACE(kind.name);
    const auto run = run_of(kind);
    const Leavings alone = test::run_alone(run);
    for (const int stage : {0, 1, 3}) {
      for (const Leavings& one : test::run_on_ranks(run, 3, stage)) {
        EXPECT_EQ(differing(one, alone), "") << stage;
        EXPECT_TRUE(one.weights == alone.weights) << stage;
        EXPECT_TRUE(one.files == alone.files) << stage;
      }
    }
  }
}

// On a device, and with master weights and moments on the host.
TEST(RankOptimisers, HaveTheBitsOfTheHostOnADevice) {
  std::string why;
  if (model::make_device_team(why) == nullptr) GTEST_SKIP() << why;
  for (const OptimKind& kind : OptimKind::all()) {
    if (kind.name == "adamw") continue;  // offload_test.cpp
    SCOPED_TRACE(kind.name);
    test::PolicyRun run = run_of(kind);
    const Leavings host = test::run_alone(run);
    for (const bool offload : {false, true}) {
      if (kind.muon && offload) continue;  // refused
      run.settings.optim.offload = offload;
      run.on_device = true;
      const Leavings device = test::run_alone(run);
      EXPECT_EQ(differing(device, host), "") << offload;
      EXPECT_TRUE(device.weights == host.weights) << offload;
      EXPECT_TRUE(device.files == host.files) << offload;
    }
  }
}

}  // namespace
}  // namespace troupe::learn
