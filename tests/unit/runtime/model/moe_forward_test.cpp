// A layer of experts against one row after another, one expert after another, in plain loops: the
// same bits, however many rows chose an expert and however the team shares the work.
#include "runtime/model/moe_forward.hpp"

#include "kernels/scalar.hpp"
#include "runtime/model/group_plan.hpp"
#include "tests/unit/runtime/model/same_bits.hpp"
#include "tests/unit/runtime/model/test_models.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe::model {
namespace {

using Row = std::vector<float>;

Row random_rows(std::int64_t count, int salt) {
  Row out;
  for (const std::int32_t word : some_tokens(count, 20001, salt))
    out.push_back(static_cast<float>(word - 10000) * 1e-4f);
  return out;
}

// y = W x for W [rows, columns], each a chain over the columns.
Row product(const float* w, std::int64_t rows, const Row& x) {
  Row y(static_cast<std::size_t>(rows));
  for (std::size_t r = 0; r < y.size(); ++r) {
    for (std::size_t i = 0; i < x.size(); ++i)
      y[r] = std::fma(x[i], w[r * x.size() + i], y[r]);
  }
  return y;
}

// down(silu(gate x) * up x).
Row network(const float* flat, const ExpertOffsets& at, std::int64_t ffn, const Row& x) {
  const Row gate = product(flat + at.gate, ffn, x);
  Row act = product(flat + at.up, ffn, x);
  for (std::size_t i = 0; i < act.size(); ++i)
    act[i] = (gate[i] / (1.0f + kernels::exp_f32(-gate[i]))) * act[i];
  return product(flat + at.down, static_cast<std::int64_t>(x.size()), act);
}

float lane_sum(const Row& x) {
  float lanes[16] = {};
  for (std::size_t i = 0; i < x.size(); ++i)
    lanes[i % 16] += x[i];
  for (int width = 8; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane)
      lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

Row naive_row(const ParamStore& params, std::size_t layer, const Row& x, const Row& residual) {
  const MoeSpec& moe = params.spec().moe;
  const MoeOffsets& at = params.layout().layers[layer].moe;
  Row p = product(params.data() + at.router, moe.experts, x);
  const float largest = *std::max_element(p.begin(), p.end());
  for (float& value : p)
    value = kernels::exp_f32(value - largest);
  const float sum = lane_sum(p);
  for (float& value : p)
    value = value / sum;
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return p[a] > p[b]; });
  order.resize(static_cast<std::size_t>(moe.experts_per_token));
  float divisor = moe.norm_topk ? 0.0f : 1.0f;
  for (const std::size_t e : order)
    divisor = moe.norm_topk ? divisor + p[e] : divisor;
  std::sort(order.begin(), order.end());
  Row total(x.size());
  const auto add = [&](float weight, const Row& y) {
    for (std::size_t i = 0; i < total.size(); ++i)
      total[i] = std::fma(weight, y[i], total[i]);
  };
  for (const std::size_t e : order)
    add(p[e] / divisor, network(params.data(), at.experts[e], moe.ffn, x));
  if (moe.has_shared()) {
    const float gate = product(params.data() + at.shared_gate, 1, x)[0];
    add(1.0f / (1.0f + kernels::exp_f32(-gate)),
        network(params.data(), at.shared, moe.shared_ffn, x));
  }
  for (std::size_t i = 0; i < total.size(); ++i)
    total[i] = residual[i] + total[i];
  return total;
}

Row naive(const TestModel& model, std::size_t layer, const Row& x, const Row& residual) {
  const auto hidden = static_cast<std::ptrdiff_t>(model.params.spec().hidden);
  Row out;
  for (auto at = x.begin(); at != x.end(); at += hidden) {
    const auto mid = residual.begin() + (at - x.begin());
    const Row row = naive_row(model.params, layer, Row(at, at + hidden), Row(mid, mid + hidden));
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

struct Ran {
  Row out;
  std::vector<std::int32_t> experts;
};

Ran grouped(core::TeamRunner& team,
            const TestModel& model,
            std::int64_t layer,
            Row x,
            const Row& residual) {
  const ModelSpec& spec = model.params.spec();
  const std::int64_t rows = std::ssize(x) / spec.hidden;
  ForwardScratch scratch;
  scratch.reserve(core::host_memory(), spec, rows, 1);
  Ran ran{residual, {}};  // in place, as the engine does
  LayerBuffers io;
  io.normed = x.data();
  io.gate_up = scratch.gate_up.data();
  io.act = scratch.act.data();
  io.moe = scratch.moe.views(spec.moe);
  io.x_mid = io.out = ran.out.data();
  team.run([&](core::Team member) {
    kernels::flush_denormals();
    sparse_feed_forward(Shares(member, rows), spec, model.weights.layer(layer).moe, io, rows);
  });
  const std::int32_t* chosen = io.moe.routing.expert;
  ran.experts.assign(chosen, chosen + rows * spec.moe.experts_per_token);
  return ran;
}

// A router that looks at one number of a row only, so that tests can choose.
void aim(TestModel& model, std::int64_t layer, std::int64_t expert, std::int64_t column) {
  const ModelSpec& spec = model.params.spec();
  auto router = model.params.view(router_name(spec.moe.names, layer));
  router[static_cast<std::size_t>(expert * spec.hidden + column)] = 1000.0f;
  model.repack();
}

class SparseFeedForward : public testing::TestWithParam<ModelSpec> {};

TEST_P(SparseFeedForward, EqualsLoopsOverRowsAndExpertsBitForBit) {
  const TestModel model(GetParam());
  core::SerialTeam serial;
  PairTeam pair;
  // Fewer rows than members, few, many on one, and enough that two members split rows.
  for (const std::int64_t rows : {1, 2, 3, 17, 70, 130}) {
    const Row x = random_rows(rows * GetParam().hidden, 1);
    const Row residual = random_rows(rows * GetParam().hidden, 2);
    const Row expected = naive(model, 0, x, residual);
    EXPECT_TRUE(same_bits(expected, grouped(serial, model, 0, x, residual).out)) << rows << " rows";
    EXPECT_TRUE(same_bits(expected, grouped(pair, model, 0, x, residual).out)) << rows << " rows";
  }
}

TEST_P(SparseFeedForward, OneExpertWithAllRowsAndOthersWithNone) {
  TestModel model(GetParam());
  const MoeSpec& moe = GetParam().moe;
  core::SerialTeam serial;
  PairTeam pair;
  // Every row has a 1 in column 0, and there the first experts are wanted above all.
  for (std::int64_t e = 0; e < moe.experts_per_token; ++e)
    aim(model, 0, moe.experts - 1 - e, 0);
  Row x = random_rows(40 * GetParam().hidden, 3);
  for (std::size_t row = 0; row < 40; ++row)
    x[row * static_cast<std::size_t>(GetParam().hidden)] = 1.0f;
  const Row residual = random_rows(std::ssize(x), 4);
  const Ran ran = grouped(pair, model, 0, x, residual);
  EXPECT_EQ(*std::min_element(ran.experts.begin(), ran.experts.end()),
            moe.experts - moe.experts_per_token);
  EXPECT_TRUE(same_bits(naive(model, 0, x, residual), ran.out));
  EXPECT_TRUE(same_bits(ran.out, grouped(serial, model, 0, x, residual).out));
}

TEST_P(SparseFeedForward, EqualScoresGoToTheLowerExperts) {
  TestModel model(GetParam());
  core::SerialTeam serial;
  for (float& weight : model.params.view(router_name(GetParam().moe.names, 0)))
    weight = 0.0f;
  model.repack();
  const Row x = random_rows(3 * GetParam().hidden, 5), residual = random_rows(std::ssize(x), 6);
  const Ran ran = grouped(serial, model, 0, x, residual);
  for (std::size_t i = 0; i < ran.experts.size(); ++i) {
    EXPECT_EQ(ran.experts[i], static_cast<std::int32_t>(
                                  i % static_cast<std::size_t>(GetParam().moe.experts_per_token)));
  }
  EXPECT_TRUE(same_bits(naive(model, 0, x, residual), ran.out));
}

TEST_P(SparseFeedForward, ARowsBitsDoNotDependOnItsCompany) {
  const TestModel model(GetParam());
  PairTeam pair;
  const std::int64_t hidden = GetParam().hidden;
  const Row x = random_rows(64 * hidden, 7), residual = random_rows(64 * hidden, 8);
  const Row together = grouped(pair, model, 0, x, residual).out;
  const auto slice = [&](const Row& from, std::int64_t row, std::int64_t rows) {
    return Row(from.begin() + row * hidden, from.begin() + (row + rows) * hidden);
  };
  for (const std::int64_t rows : {1, 4, 16}) {
    for (std::int64_t row = 0; row < 64; row += rows) {
      const Row part = grouped(pair, model, 0, slice(x, row, rows), slice(residual, row, rows)).out;
      ASSERT_TRUE(same_bits(slice(together, row, rows), part)) << "rows from " << row;
    }
  }
}

TEST_P(SparseFeedForward, NotANumberInOneRowHarmsNoOther) {
  const TestModel model(GetParam());
  PairTeam pair;
  const auto hidden = static_cast<std::size_t>(GetParam().hidden);
  Row x = random_rows(20 * GetParam().hidden, 9);
  const Row residual = random_rows(std::ssize(x), 10);
  const Row clean = grouped(pair, model, 0, x, residual).out;
  x[7 * hidden + 3] = std::nanf("");
  const Row harmed = grouped(pair, model, 0, x, residual).out;
  for (std::size_t i = 0; i < clean.size(); ++i) {
    if (i / hidden == 7) {
      ASSERT_TRUE(std::isnan(harmed[i]));
    } else {
      ASSERT_EQ(clean[i], harmed[i]) << "row " << i / hidden;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Specs,
                         SparseFeedForward,
                         testing::Values(mixtral_spec(), qwen_moe_spec()),
                         [](const auto& tested) { return tested.param.architecture; });

// The choices of the logit rows of a prompt, when they are wanted.
std::vector<std::uint16_t> routed(const TestModel& model,
                                  std::int64_t tokens,
                                  std::vector<std::int32_t> logit_rows) {
  const ModelSpec& spec = model.params.spec();
  const auto prompt = some_tokens(tokens, spec.vocab, 3);
  GroupPlan group;
  const SampleGroup view{prompt, {std::span(prompt).first(1)}};
  EXPECT_TRUE(build_group_plan({&view, 1}, spec, 2, group));
  group.plan.logit_rows = std::move(logit_rows);
  ForwardScratch scratch;
  scratch.keep_routed = true;
  const std::int64_t rows = std::ssize(group.plan.logit_rows);
  scratch.reserve(core::host_memory(), spec, group.plan.rows(), rows);
  KvPool pool(spec, 1, 16);
  PairTeam().run(
      [&](core::Team team) { forward_hidden(team, model.weights, group.plan, pool, scratch); });
  const std::uint16_t* out = scratch.routed.data();
  return {out, out + rows * routed_width(spec)};
}

TEST(KeepRouted, ChoicesOfEachLogitRowInEachLayerOfExperts) {
  TestModel model(qwen_moe_spec());
  for (float& weight : model.params.view(router_name(MoeNames::kQwen, 0)))
    weight = 0.0f;
  model.repack();
  // Rows of [2 layers][3 choices]; layer 0 cannot tell its experts apart.
  const auto all = routed(model, 12, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  ASSERT_EQ(all.size(), 12u * 6);
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(std::vector(all.begin() + 6 * static_cast<std::ptrdiff_t>(i),
                          all.begin() + 6 * static_cast<std::ptrdiff_t>(i) + 3),
              (std::vector<std::uint16_t>{0, 1, 2}));
    EXPECT_LT(all[6 * i + 3], all[6 * i + 4]);
    EXPECT_LT(all[6 * i + 4], all[6 * i + 5]);
    EXPECT_LT(all[6 * i + 5], 19);
  }
  const auto some = routed(model, 12, {4, 11});
  EXPECT_TRUE(std::equal(some.begin(), some.begin() + 6, all.begin() + 4 * 6));
  EXPECT_TRUE(std::equal(some.begin() + 6, some.end(), all.begin() + 11 * 6));
  EXPECT_FALSE(std::equal(some.begin(), some.begin() + 6, some.begin() + 6));
  // A shorter prompt: earlier rows do not see later ones.
  EXPECT_EQ(routed(model, 5, {4}), std::vector(some.begin(), some.begin() + 6));
}

TEST(ShareExpertPanels, EveryPanelIsOneMembersAndWorkIsEven) {
  ExpertRanges ranges;
  const std::int32_t rows[] = {0, 5, 0, 100, 1, 1, 0, 37};
  for (std::size_t e = 0; e < 8; ++e)
    ranges.begin[e + 1] = ranges.begin[e] + rows[e];
  for (const int members : {1, 2, 3, 7, 64}) {
    std::vector<int> seen(8 * 5);
    std::int64_t most = 0, total = 0;
    for (int rank = 0; rank < members; ++rank) {
      std::int64_t cost = 0;
      share_expert_panels({rank, members, nullptr}, 8, ranges, 75,
                          [&](std::int64_t e, std::int64_t begin, std::int64_t end) {
                            for (std::int64_t panel = begin; panel < end; ++panel)
                              ++seen[static_cast<std::size_t>(e * 5 + panel)];
                            cost += (end - begin) * (ranges.rows(e) + 8);
                          });
      most = std::max(most, cost);
      total += cost;
    }
    for (std::size_t i = 0; i < seen.size(); ++i)
      ASSERT_EQ(seen[i], rows[i / 5] > 0 ? 1 : 0) << members << " members, expert " << i / 5;
    EXPECT_LE(most, total / members + 108);  // the dearest panel
  }
}

}  // namespace
}  // namespace troupe::model
