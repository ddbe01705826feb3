// The forward pass: plans, sharing, the same bits whatever the team, the chunking or the company.
#include "runtime/model/forward.hpp"

#include "runtime/model/group_plan.hpp"
#include "runtime/model/score.hpp"
#include "tests/unit/runtime/model/same_bits.hpp"
#include "tests/unit/runtime/model/test_models.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

namespace troupe::model {
namespace {

using Tokens = std::vector<std::int32_t>;

struct Group {
  Tokens prompt;
  std::vector<Tokens> responses;
  SampleGroup view() const {
    SampleGroup group{prompt, {}};
    for (const Tokens& response : responses)
      group.responses.push_back(response);
    return group;
  }
};

// Groups whose prompts end inside, at and just after a KV block, with responses of length 0, 1,
// many.
std::vector<Group> varied_groups(std::int64_t vocab) {
  std::vector<Group> groups;
  int salt = 0;
  for (const std::int64_t prompt : {5, 16, 33, 70}) {
    Group group{some_tokens(prompt, vocab, ++salt), {}};
    for (const std::int64_t length : {1, 20, 0, 64}) {
      group.responses.push_back(some_tokens(length, vocab, ++salt));
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

GroupPlan plan_of(const std::vector<Group>& groups, const ModelSpec& spec, int members) {
  std::vector<SampleGroup> views;
  for (const Group& group : groups)
    views.push_back(group.view());
  GroupPlan plan;
  const auto built = build_group_plan(views, spec, members, plan);
  EXPECT_TRUE(built);
  return plan;
}

std::vector<float> score(core::TeamRunner& team,
                         const TestModel& model,
                         const std::vector<Group>& groups) {
  const GroupPlan plan = plan_of(groups, model.weights.spec(), team.size());
  return score_logprobs(team, model.weights, plan.plan, plan.targets, 0.7f);
}

// Each sample in a plan of its own, in the same order.
std::vector<float> score_alone(const TestModel& model, const std::vector<Group>& groups) {
  core::SerialTeam serial;
  std::vector<float> all;
  for (const Group& group : groups) {
    for (const Tokens& response : group.responses) {
      const auto part = score(serial, model, {{group.prompt, {response}}});
      all.insert(all.end(), part.begin(), part.end());
    }
  }
  return all;
}

// One row, three kv heads of three heads each: two members take four and five heads, not three and
// six; three members need no cut.
TEST(ForwardPlan, AFewSingleRowsAreCutBetweenHeads) {
  for (const int members : {1, 2, 3, 4}) {
    ForwardPlan plan;
    plan.tokens = {1};
    plan.segments = {{0, 1, 99, 0}};
    plan.finish(3, members, 3);
    std::vector<int> seen(9);
    std::vector<int> own;
    for (std::size_t m = 0; m < static_cast<std::size_t>(members); ++m) {
      own.push_back(0);
      for (std::int32_t i = plan.item_begin[m]; i < plan.item_begin[m + 1]; ++i) {
        const auto& item = plan.items[static_cast<std::size_t>(i)];
        EXPECT_EQ(item.row_end - item.row_begin, 1);
        const std::int32_t end = item.head_end > 0 ? item.head_end : 3;
        for (std::int32_t head = item.head_begin; head < end; ++head, ++own.back())
          ++seen[static_cast<std::size_t>(3 * item.kv_head + head)];
      }
    }
    EXPECT_EQ(seen, std::vector<int>(9, 1)) << members;
    EXPECT_LE(*std::max_element(own.begin(), own.end()), 9 / members + 1) << members;
    if (members % 2 == 1) {
      EXPECT_EQ(plan.items.size(), 3u);
    }
  }
}

TEST(ForwardPlan, ItemsCoverEveryRowOnceAndAreBalanced) {
  GroupPlan built = plan_of(varied_groups(257), tiny_spec(), 2);
  ForwardPlan& plan = built.plan;
  plan.finish(3, 2);
  std::vector<int> seen(static_cast<std::size_t>(plan.rows()) * 3);
  for (const auto& item : plan.items) {
    const auto& segment = plan.segments[static_cast<std::size_t>(item.segment)];
    EXPECT_LT(item.row_begin, item.row_end);
    EXPECT_LE(item.row_end, segment.rows);
    for (std::int32_t r = item.row_begin; r < item.row_end; ++r) {
      ++seen[static_cast<std::size_t>((segment.first_row + r) * 3 + item.kv_head)];
    }
  }
  for (const int count : seen)
    ASSERT_EQ(count, 1);
  ASSERT_EQ(plan.item_begin.size(), 3u);
  EXPECT_EQ(plan.item_begin[0], 0);
  EXPECT_EQ(plan.item_begin[2], static_cast<std::int32_t>(plan.items.size()));
  std::int64_t cost[2] = {0, 0};
  for (int m = 0; m < 2; ++m) {
    for (std::int32_t i = plan.item_begin[static_cast<std::size_t>(m)];
         i < plan.item_begin[static_cast<std::size_t>(m) + 1]; ++i) {
      const auto& item = plan.items[static_cast<std::size_t>(i)];
      const auto& segment = plan.segments[static_cast<std::size_t>(item.segment)];
      for (std::int32_t r = item.row_begin; r < item.row_end; ++r) {
        cost[m] += segment.first_position + r + 1;
      }
    }
  }
  EXPECT_GT(std::min(cost[0], cost[1]) * 100, (cost[0] + cost[1]) * 40);
}

TEST(ForwardPlan, MoreMembersThanItemsIsFine) {
  GroupPlan built = plan_of({{{1}, {{2}}}}, tiny_spec(), 8);
  EXPECT_EQ(built.plan.item_begin.size(), 9u);
  EXPECT_EQ(built.plan.item_begin.back(), 1);
}

TEST(GroupPlan, PromptIsComputedOnceAndTargetsFollowTheResponses) {
  const Group group{{7, 8, 9}, {{1, 2, 3}, {4}, {}}};
  const GroupPlan built = plan_of({group}, tiny_spec(), 1);
  EXPECT_EQ(built.plan.tokens, (Tokens{7, 8, 9, 1, 2}));
  EXPECT_EQ(built.plan.positions, (Tokens{0, 1, 2, 3, 4}));
  EXPECT_EQ(rows_of(group.view()), 5);
  EXPECT_EQ(built.targets.token, (Tokens{1, 2, 3, 4}));
  EXPECT_EQ(built.targets.row, (Tokens{0, 1, 2, 0}));
  EXPECT_EQ(built.plan.logit_rows, (Tokens{2, 3, 4}));
}

TEST(GroupPlan, BlocksOfAGroupBelongToNobodyElse) {
  const GroupPlan built = plan_of(varied_groups(257), tiny_spec(), 1);
  const ForwardPlan& plan = built.plan;
  std::vector<int> owner(1000, -1);
  std::vector<int> written(16'000, 0);
  for (const std::int32_t slot : plan.slots)
    ++written[static_cast<std::size_t>(slot)];
  for (const int count : written)
    ASSERT_LE(count, 1);
  for (std::size_t g = 0; g + 1 < plan.group_begin.size(); ++g) {
    for (std::int32_t s = plan.group_begin[g]; s < plan.group_begin[g + 1]; ++s) {
      const auto& segment = plan.segments[static_cast<std::size_t>(s)];
      for (std::int32_t p = 0; p < segment.first_position + segment.rows; ++p) {
        const auto block = static_cast<std::size_t>(
            plan.block_table[static_cast<std::size_t>(segment.table + p / 16)]);
        if (owner[block] < 0) owner[block] = static_cast<int>(g);
        ASSERT_EQ(owner[block], static_cast<int>(g));
        ASSERT_EQ(written[block * 16 + static_cast<std::size_t>(p % 16)], 1) << "unwritten key";
      }
    }
  }
}

TEST(GroupPlan, RefusesWhatDoesNotFit) {
  const ModelSpec spec = tiny_spec();
  GroupPlan plan;
  const auto error = [&](const Group& group) {
    const SampleGroup view = group.view();
    const auto built = build_group_plan({&view, 1}, spec, 1, plan);
    EXPECT_FALSE(built);
    return built ? std::string() : built.error().message;
  };
  EXPECT_NE(error({{}, {{1}}}).find("empty prompt"), std::string::npos);
  EXPECT_NE(error({{1, 257}, {{1}}}).find("group 0, prompt: token id 257"), std::string::npos);
  EXPECT_NE(error({{1}, {{1}, {-1}}}).find("sample 1: token id -1"), std::string::npos);
  EXPECT_NE(error({Tokens(200), {Tokens(58)}}).find("exceed the context of 256"),
            std::string::npos);
  const Group fits{Tokens(200), {Tokens(57)}};
  const SampleGroup view = fits.view();
  EXPECT_TRUE(build_group_plan({&view, 1}, spec, 1, plan));
}

class ForwardBits : public testing::TestWithParam<ModelSpec> {};

TEST_P(ForwardBits, SharedPromptsGiveTheBitsOfSamplesAlone) {
  const TestModel model(GetParam());
  core::SerialTeam serial;
  const auto groups = varied_groups(257);
  EXPECT_TRUE(same_bits(score(serial, model, groups), score_alone(model, groups)));
}

TEST_P(ForwardBits, TeamsOfOneAndTwoGiveTheSameBits) {
  const TestModel model(GetParam());
  core::SerialTeam serial;
  PairTeam pair;
  const auto groups = varied_groups(257);
  EXPECT_TRUE(same_bits(score(serial, model, groups), score(pair, model, groups)));
  // Few rows: the members split columns instead of rows.
  const std::vector<Group> small = {{{3, 4}, {{5, 6, 7}}}};
  EXPECT_TRUE(same_bits(score(serial, model, small), score(pair, model, small)));
}

TEST_P(ForwardBits, OneUlpInOneWeightIsSeen) {
  TestModel model(GetParam());
  core::SerialTeam serial;
  const auto groups = varied_groups(257);
  float& weight = model.params.view("model.layers.1.self_attn.o_proj.weight")[100];
  weight = 4.0f;  // large beside the others, or its last bit could be lost in their sum
  model.repack();
  const auto before = score(serial, model, groups);
  weight = std::nextafter(weight, 5.0f);
  model.repack();
  EXPECT_FALSE(same_bits(before, score(serial, model, groups)));
}

TEST_P(ForwardBits, PackingByATeamGivesTheSamePanels) {
  TestModel model(GetParam());
  PackedWeights packed(GetParam());
  PairTeam pair;
  pair.run([&](core::Team team) { packed.fill(team, model.params, 9); });
  EXPECT_EQ(packed.version(), 9u);
  std::vector<float> a(static_cast<std::size_t>(GetParam().hidden)), b = a;
  const auto view = model.params.view("model.embed_tokens.weight");
  for (std::int32_t token = 0; token < 257; ++token) {
    packed.embed(&token, 0, 1, a.data());
    model.weights.embed(&token, 0, 1, b.data());
    ASSERT_TRUE(same_bits(a, b));
    for (std::size_t i = 0; i < a.size(); ++i)
      ASSERT_EQ(a[i],
                view[static_cast<std::size_t>(token) * a.size() + i] * GetParam().embed_scale);
  }
}

// Log-probs of a response in the engine's way: the prompt in chunks, then one token at a time,
// through a pool of all layers whose unused slots hold NaN. With room for the norms of `alone`
// members the team meets less often.
std::vector<float> decoded(core::TeamRunner& team,
                           std::int64_t alone,
                           const TestModel& model,
                           const Tokens& prompt,
                           const Tokens& response) {
  const ModelSpec& spec = model.params.spec();
  Tokens sequence = prompt;
  sequence.insert(sequence.end(), response.begin(), response.end());
  KvPool pool(spec, spec.layers, 9);
  const auto poison = std::nanf("");
  std::fill_n(pool.k(0).f32(), spec.layers * 9 * pool.block_size(), poison);
  std::fill_n(pool.v(0).f32(), spec.layers * 9 * pool.block_size(), poison);
  ForwardScratch scratch;
  std::vector<float> logits(272), stepwise;
  std::vector<float> block_max(1), block_sum(1);
  const float inv_temperature = 1.0f / 0.7f;
  std::size_t done = 0;
  for (const std::size_t step : {7u, 25u, 5u}) {
    ForwardPlan plan;
    const auto feed = [&](std::size_t count) {
      plan.clear();
      plan.segments.push_back(
          {0, static_cast<std::int32_t>(count), static_cast<std::int32_t>(done), 0});
      for (std::int32_t b = 0; b < 8; ++b)
        plan.block_table.push_back(8 - b);  // backwards
      for (std::size_t i = 0; i < count; ++i) {
        const auto p = static_cast<std::int32_t>(done + i);
        plan.tokens.push_back(sequence[done + i]);
        plan.positions.push_back(p);
        plan.slot_begin.push_back(static_cast<std::int32_t>(i));
        plan.slots.push_back((8 - p / 16) * 16 + p % 16);
      }
      plan.slot_begin.push_back(static_cast<std::int32_t>(count));
      plan.logit_rows = {static_cast<std::int32_t>(count) - 1};
      plan.finish(spec.kv_heads, team.size());
      scratch.reserve(core::host_memory(), spec, plan.rows(), 1, alone);
      team.run(
          [&](core::Team member) { forward_hidden(member, model.weights, plan, pool, scratch); });
      done += count;
    };
    feed(step);
    while (done >= prompt.size() && done < sequence.size()) {
      head_forward({}, model.weights, scratch.head_in.data(), 1, logits.data(), 272,
                   &inv_temperature, block_max.data(), block_sum.data());
      const float lse = merge_vocab_stats(block_max.data(), block_sum.data(), 1);
      const auto target = static_cast<std::size_t>(sequence[done]);
      stepwise.push_back(token_logprob(logits[target], inv_temperature, lse));
      feed(1);
    }
  }
  return stepwise;
}

TEST_P(ForwardBits, ChunksAndDecodingGiveTheBitsOfOnePass) {
  const TestModel model(GetParam());
  const Tokens prompt = some_tokens(37, 257, 1), response = some_tokens(30, 257, 2);
  core::SerialTeam serial;
  PairTeam pair;
  const auto whole = score(serial, model, {{prompt, {response}}});
  EXPECT_TRUE(same_bits(whole, decoded(serial, 0, model, prompt, response)));
  EXPECT_TRUE(same_bits(whole, decoded(serial, 1, model, prompt, response)));
  EXPECT_TRUE(same_bits(whole, decoded(pair, 1, model, prompt, response)));
  EXPECT_TRUE(same_bits(whole, decoded(pair, 2, model, prompt, response)));
}

INSTANTIATE_TEST_SUITE_P(Specs, ForwardBits, testing::ValuesIn(varied_specs()), [](const auto& i) {
  return i.param.architecture;
});

TEST(KvPool, CopiesABlockInAllLayersAndOneLayerServesAll) {
  const ModelSpec spec = tiny_spec();
  KvPool pool(spec, 2, 3);
  pool.k(1).f32()[0] = 4.0f;
  pool.v(0).f32()[5] = 2.0f;
  pool.copy_block(0, 2);
  EXPECT_EQ(pool.k(1).f32()[2 * pool.block_size()], 4.0f);
  EXPECT_EQ(pool.v(0).f32()[2 * pool.block_size() + 5], 2.0f);
  KvPool shared(spec, 1, 3);
  EXPECT_EQ(shared.k(0).data, shared.k(1).data);
  EXPECT_EQ(pool.bytes(), 2 * shared.bytes());
}

TEST(KvPool, IsReplacedWhenItIsTooSmallOrOfAnotherDtype) {
  const ModelSpec spec = tiny_spec();
  KvPool pool;
  pool.reserve_discard(spec, 8, core::host_memory(), kernels::KvDtype::kF32);
  EXPECT_EQ(pool.blocks(), 10);
  pool.k(0).f32()[0] = 4.0f;
  pool.reserve_discard(spec, 10, core::host_memory(), kernels::KvDtype::kF32);
  EXPECT_EQ(pool.k(0).f32()[0], 4.0f);
  const std::uint64_t bytes = pool.bytes();
  pool.reserve_discard(spec, 8, core::host_memory(), kernels::KvDtype::kBf16);
  EXPECT_EQ(pool.bytes(), bytes / 2);
  EXPECT_EQ(pool.k(0).f32(), nullptr);
  pool.reserve_discard(spec, 11, core::host_memory(), kernels::KvDtype::kBf16);
  EXPECT_EQ(pool.blocks(), 13);
}

TEST(MergeVocabStats, MatchesALongSum) {
  std::vector<float> z = {1.0f, -3.0f, 700.0f, 699.0f};
  const float maxima[2] = {1.0f, 700.0f};
  const float sums[2] = {1.0f + std::exp(-4.0f), 1.0f + std::exp(-1.0f)};
  EXPECT_NEAR(merge_vocab_stats(maxima, sums, 2), 700.0f + std::log(1.0f + std::exp(-1.0f)), 1e-4f);
}

}  // namespace
}  // namespace troupe::model
