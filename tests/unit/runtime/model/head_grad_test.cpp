// The head in chunks of rows: however many chunks keep their logits from the forward to the
// backward pass, however many rows a chunk has, and whatever the team, the gradients have the same
// bits.
#include "runtime/model/head_grad.hpp"

#include "tests/unit/runtime/model/device_team.hpp"
#include "tests/unit/runtime/model/same_bits.hpp"
#include "tests/unit/runtime/model/test_models.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace troupe::model {
namespace {

constexpr std::int64_t kRows = 2 * kHeadRows_max + 88;  // three chunks

struct HeadRun {
  std::vector<float> logprobs, dhead_in, dweights;
  std::int64_t chunks = 0, places = 0;
};

class ChunkedHead : public ::testing::Test {
 protected:
  ChunkedHead() : model(tiny_spec()) {
    const auto width = static_cast<std::size_t>(model.params.spec().hidden);
    for (std::size_t i = 0; i < kRows * width; ++i)
      head_in.push_back(0.01f * static_cast<float>(static_cast<int>(i * 37 % 211) - 105));
    for (std::int64_t row = 0; row < kRows; ++row) {
      targets.row.push_back(static_cast<std::int32_t>(row));
      targets.token.push_back(static_cast<std::int32_t>(row * 13 % model.params.spec().vocab));
      coefficients.push_back(0.1f * static_cast<float>(row % 9) - 0.3f);
    }
  }

  // `spoil`: kept logits are overwritten between the two passes.
  HeadRun run(core::TeamRunner& team, std::int64_t chunks_kept, bool spoil = false) {
    return run(team, model.params, model.weights, chunks_kept, spoil);
  }

  HeadRun run(core::TeamRunner& team,
              const ParamStore& params,
              const PackedWeights& weights,
              std::int64_t chunks_kept,
              bool spoil = false) {
    const ModelSpec& spec = params.spec();
    const std::int64_t ld = kernels::panels_of(spec.vocab) * kernels::kPanel;
    HeadScratch scratch;
    scratch.prepare(team, spec,
                    {.targets = targets,
                     .rows = kRows,
                     .temperature = 0.8f,
                     .entropy = true,
                     .backward = true,
                     .logits_max = chunks_kept * kHeadRows_max * ld});
    HeadRun out;
    out.chunks = scratch.chunks;
    out.places = scratch.places;
    out.logprobs.resize(kRows);
    out.dhead_in.resize(head_in.size());
    core::Buffer<float> input(std::ssize(head_in), team.memory());
    core::Buffer<float> dinput(std::ssize(head_in), team.memory());
    input.upload(head_in);
    const HeadCall call{weights, input.data(), kRows, scratch};
    team.run([&](core::Team member) { head_logprobs(member, call); });
    scratch.results(out.logprobs, {});
    scratch.set_gradients(coefficients.data(), coefficients.data());
    if (spoil) std::fill_n(scratch.logits.data(), scratch.places * kHeadRows_max * ld, 0.0f);
    ParamStore grads = params.same_layout();
    const HeadGrad grad{params, grads, dinput.data()};
    team.run([&](core::Team member) { head_backward(member, call, grad); });
    dinput.download(out.dhead_in);
    out.dweights = numbers_of(grads);
    return out;
  }

  TestModel model;
  std::vector<float> head_in, coefficients;
  TokenTargets targets;
};

bool same_run(const HeadRun& a, const HeadRun& b) {
  return same_bits(a.logprobs, b.logprobs) && same_bits(a.dhead_in, b.dhead_in) &&
         same_bits(a.dweights, b.dweights);
}

TEST_F(ChunkedHead, KeptLogitsGiveTheBitsOfThoseMadeAgain) {
  core::SerialTeam one;
  PairTeam two;
  const HeadRun expected = run(one, 0);
  EXPECT_EQ(expected.places, 1);
  EXPECT_TRUE(std::any_of(expected.dweights.begin(), expected.dweights.end(),
                          [](float x) { return x != 0.0f; }));
  for (const std::int64_t kept : {1, 2, 3, 100}) {
    EXPECT_TRUE(same_run(expected, run(one, kept))) << kept;
    EXPECT_TRUE(same_run(expected, run(two, kept))) << kept;
  }
  EXPECT_EQ(run(one, 2).places, 2);
  EXPECT_EQ(run(one, 100).places, 3);
}

TEST_F(ChunkedHead, WithoutRoomTheLogitsAreMadeAgainAndWithRoomTheyAreNot) {
  core::SerialTeam one;
  const HeadRun expected = run(one, 0);
  EXPECT_TRUE(same_run(expected, run(one, 0, true)));
  // Two places: the last chunk has its own, the first two share the other one.
  const HeadRun partly = run(one, 2, true);
  const std::size_t kept_from = 2 * kHeadRows_max * 60;
  EXPECT_TRUE(std::equal(partly.dhead_in.begin(), partly.dhead_in.begin() + kept_from,
                         expected.dhead_in.begin()));
  EXPECT_FALSE(std::equal(partly.dhead_in.begin() + kept_from, partly.dhead_in.end(),
                          expected.dhead_in.begin() + kept_from));
  EXPECT_FALSE(same_run(expected, run(one, 3, true)));
}

class ChunkedHeadOnDevice : public OnDevice<ChunkedHead> {};

// Room for no chunk, and for 256, 512 and 768 rows: a device takes as large a chunk as fits.
TEST_F(ChunkedHeadOnDevice, LargerChunksGiveTheHostsBits) {
  core::SerialTeam host;
  const HeadRun expected = run(host, 0);
  const DeviceModel there(device(), model.params);
  const std::int64_t chunks[] = {3, 3, 2, 1};
  for (std::int64_t kept = 0; kept < 4; ++kept) {
    const HeadRun actual = run(device(), there.params, there.weights, kept);
    EXPECT_EQ(actual.chunks, chunks[kept]) << kept;
    EXPECT_EQ(actual.places, 1) << kept;
    EXPECT_TRUE(same_run(expected, actual)) << kept;
  }
  EXPECT_EQ(expected.chunks, 3);
}

}  // namespace
}  // namespace troupe::model
