// Updates of episodes with turns on the tiny model: the same bits as rows whose tokens are masked
// one at a time, the gradient of the loss, and nothing learned from context.
#include "runtime/learn/rl/critic_trainer.hpp"
#include "runtime/learn/rl/update_context.hpp"
#include "runtime/model/score.hpp"
#include "tests/unit/runtime/learn/rl/rl_fixture.hpp"

#include <algorithm>

namespace troupe::learn {
namespace {

// Log-probs of all of the row's ids behind the prompt, as one plain response.
std::vector<float> plain_logprobs(const model::PackedWeights& weights,
                                  const std::vector<std::int32_t>& prompt,
                                  const std::vector<std::int32_t>& ids) {
  experience::Group group;
  group.prompt = prompt;
  group.samples.emplace_back().tokens = ids;
  return exact_logprobs(weights, group)[0];
}

std::vector<float> drawn_of(const std::vector<float>& all, const experience::Row& row) {
  std::vector<float> some;
  for (const std::uint32_t place : row.drawn)
    some.push_back(all[place]);
  return some;
}

experience::Trajectory episode_sample(core::Rng& rng, std::vector<std::size_t> lengths) {
  experience::Trajectory sample;
  for (const std::size_t length : lengths) {
    sample.turns.push_back({static_cast<std::uint32_t>(sample.tokens.size()),
                            random_tokens(rng, 1 + rng.next_below(7))});
    const auto own = random_tokens(rng, length);
    sample.tokens.insert(sample.tokens.end(), own.begin(), own.end());
  }
  return sample;
}

// Two groups of two episodes of two or three turns; the first episode of each has a fork.
std::vector<experience::Group> episode_groups(const model::PackedWeights& weights) {
  core::Rng rng(77);
  std::vector<experience::Group> groups(2);
  for (std::uint32_t slot = 0; slot < 2; ++slot) {
    experience::Group& group = groups[slot];
    group.ticket.slot = slot;
    group.prompt = random_tokens(rng, 5 + 14 * slot);
    group.samples.push_back(episode_sample(rng, {3, 4, 2}));
    const experience::Row row = experience::row_of(group.samples[0]);
    experience::Trajectory fork = episode_sample(rng, {2, 3});
    auto& context = fork.turns[0].context;
    context.insert(context.begin(), row.ids.begin(), row.ids.begin() + row.drawn[4] + 1);
    fork.shares = experience::Shares{0, 5};
    group.samples.push_back(std::move(fork));
    group.samples.push_back(episode_sample(rng, {1, 5}));
    group.samples[0].episode = group.samples[1].episode = 1;
    group.samples[2].episode = 2;
    double score = slot;
    for (auto& sample : group.samples) {
      sample.score = score += 0.75;
      sample.versions = experience::VersionRuns::all(weights.version(), sample.tokens.size());
      const experience::Row own = experience::row_of(sample);
      sample.behaviour = drawn_of(plain_logprobs(weights, group.prompt, own.ids), own);
    }
  }
  return groups;
}

TrainerSettings plain_steps() {
  TrainerSettings settings = settings_of("reinforce");
  settings.algo.advantage.estimator = "dr_grpo";
  settings.optim.optim = "sgd";
  settings.optim.sgd.momentum = 0;
  settings.optim.max_norm = 0;
  settings.optim.lr_warmup_ratio = 0;
  settings.optim.lr_scheduler = "constant";
  settings.optim.adam.lr = 1;
  return settings;
}

}  // namespace

TEST_F(PolicyTrainerRl, DrawnTokensOfARowHaveTheBitsOfThePlainRow) {
  const auto weights = make(settings_of())->packed();
  const auto groups = episode_groups(*weights);
  for (const experience::Group& group : groups) {
    MicroBatch micro;
    micro.parts = {{0, 0, group.samples.size()}};
    const std::vector<experience::Group> one = {group};
    const SampleRows rows = sample_rows(one, micro);
    model::GroupPlan plan;
    ASSERT_TRUE(model::build_group_plan(rows.groups, weights->spec(), 1, plan));
    const auto together = model::score_logprobs(team_, *weights, plan.plan, plan.targets, 1.0f);
    auto next = together.begin();
    for (const experience::Trajectory& sample : group.samples) {
      const experience::Row row = experience::row_of(sample);
      const auto plain = drawn_of(plain_logprobs(*weights, group.prompt, row.ids), row);
      for (std::size_t t = 0; t < row.drawn.size(); ++t) {
        EXPECT_EQ(*next++, plain[t]);
        // The same row with that one token as its mask.
        model::SampleGroup masked;
        masked.prompt = group.prompt;
        masked.responses.emplace_back(row.ids);
        masked.targets.emplace_back(&row.drawn[t], 1);
        model::GroupPlan single;
        ASSERT_TRUE(model::build_group_plan({&masked, 1}, weights->spec(), 1, single));
        ASSERT_EQ(single.targets.size(), 1);
        EXPECT_EQ(single.targets.token[0], sample.tokens[t]);
        EXPECT_EQ(model::score_logprobs(team_, *weights, single.plan, single.targets, 1.0f)[0],
                  plain[t]);
      }
    }
    EXPECT_EQ(next, together.end());
  }
}

TEST_F(PolicyTrainerRl, AnUpdateOfEpisodesIsOnPolicyAndHasTheirLoss) {
  auto trainer = make(plain_steps());
  const auto groups = episode_groups(*trainer->packed());
  const Table got = run(*trainer, groups);
  EXPECT_EQ(got.at("kl/rollout_train"), 0) << "the log-probs are those of the rows";
  // -mean over the drawn tokens of A l, worked out beside the trainer.
  RunningMoments moments;
  AlgoSettings algo = plain_steps().algo;
  const auto advantages = *update_advantages(algo, groups, {}, moments);
  double sum = 0, count = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t i = 0; i < groups[g].samples.size(); ++i) {
      const auto& l = groups[g].samples[i].behaviour;
      for (std::size_t t = 0; t < l.size(); ++t, ++count)
        sum -= advantages.tokens[g][i][t] * static_cast<double>(l[t]);
    }
  }
  EXPECT_NEAR(got.at("policy/loss"), sum / count, 1e-9);
}

// Weights of every kind of tensor, moved both ways.
TEST_F(PolicyTrainerRl, TheGradientOfEpisodesIsThatOfTheirLoss) {
  const TrainerSettings settings = plain_steps();
  auto trainer = make(settings);
  const auto groups = episode_groups(*trainer->packed());
  const std::vector<float> before(trainer->master().data(),
                                  trainer->master().data() + trainer->master().size());
  run(*trainer, groups);
  const auto loss_at = [&](std::size_t place, float value) {
    auto params = std::make_unique<model::ParamStore>(tiny_spec());
    std::copy(before.begin(), before.end(), params->data());
    params->data()[place] = value;
    auto moved = PolicyTrainer::create(std::move(params), settings, team_);
    return run(**moved, groups).at("policy/loss");
  };
  core::Rng rng(3);
  double largest = 0;
  for (int i = 0; i < 24; ++i) {
    const auto place = static_cast<std::size_t>(rng.next_below(before.size()));
    const double gradient =
        static_cast<double>(before[place]) - static_cast<double>(trainer->master().data()[place]);
    const float step = 4e-3f;
    const double slope =
        (loss_at(place, before[place] + step) - loss_at(place, before[place] - step)) /
        (2.0 * step);
    EXPECT_NEAR(gradient, slope, 2e-4 + 0.02 * std::fabs(slope)) << "weight " << place;
    largest = std::max(largest, std::fabs(slope));
  }
  EXPECT_GT(largest, 1e-3) << "something was compared";
}

// Cutting the update into many micro-batches parts leaves of an episode; the numbers stay.
TEST_F(PolicyTrainerRl, LeavesOfAnEpisodeLearnApartAsTheyDoTogether) {
  for (const char* objective : {"ppo", "decoupled", "gspo", "cispo", "topr", "a3po", "bypass"}) {
    TrainerSettings settings = settings_of(objective);
    if (std::string(objective) == "gspo") settings.algo.reducer = "sample_mean";
    auto together = make(settings);
    const auto groups = episode_groups(*together->packed());
    const Table one = run(*together, groups);
    settings.batch.micro_tokens_max = 64;
    auto apart = make(settings);
    const Table many = run(*apart, groups);
    EXPECT_NEAR(one.at("policy/loss"), many.at("policy/loss"), 1e-9) << objective;
    EXPECT_LT(difference(*together, *apart), 1e-5) << objective;
  }
}

TEST_F(PolicyTrainerRl, OnlineDpoComparesWholeEpisodes) {
  TrainerSettings settings = settings_of("online_dpo");
  settings.algo.advantage.estimator = "dr_grpo";
  auto trainer = make(settings);
  auto groups = episode_groups(*trainer->packed());
  double loss = 0;
  for (auto& group : groups) {
    for (auto& sample : group.samples)
      sample.reference.assign(sample.tokens.size(), -4.0f);
    double h = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      // Samples 0 and 1 are one episode, of score 1.125 against 2.25, which is better.
      for (const float l : group.samples[i].behaviour)
        h += (i == 2 ? 1 : -1) * (static_cast<double>(l) + 4.0);
    }
    loss += std::log1p(std::exp(-settings.algo.dpo_beta * h)) / 2;
  }
  EXPECT_NEAR(run(*trainer, groups).at("policy/loss"), loss, 1e-9);
}

TEST_F(PolicyTrainerRl, TurnsThatDoNotFitAreRefused) {
  auto trainer = make(settings_of());
  auto groups = episode_groups(*trainer->packed());
  groups[1].samples[1].turns[0].context[2] ^= 1;  // not what the other leaf has there
  auto refused = trainer->update(groups);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.error().message.find("sample 1 shares 5 tokens of sample 0"), std::string::npos)
      << refused.error().message;
}

// The critic values drawn tokens alone, each as in its plain row.
TEST_F(PolicyTrainerRl, ValuesOfDrawnTokensAreThoseOfThePlainRow) {
  auto params = std::make_unique<model::ParamStore>(model::with_score_head(tiny_spec(false)));
  model::randomise(*params, 4, 0.2f);
  CriticSettings settings;
  settings.batch.micro_tokens_max = 64;
  auto critic = CriticTrainer::create(std::move(params), settings, team_);
  ASSERT_TRUE(critic.has_value());
  const auto groups = episode_groups(*make(settings_of())->packed());
  const auto values = (*critic)->values(groups);
  ASSERT_TRUE(values.has_value()) << values.error().message;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t i = 0; i < groups[g].samples.size(); ++i) {
      const experience::Row row = experience::row_of(groups[g].samples[i]);
      std::vector<experience::Group> plain(1);
      plain[0].prompt = groups[g].prompt;
      plain[0].samples.emplace_back().tokens = row.ids;
      const auto all = (*critic)->values(plain);
      ASSERT_TRUE(all.has_value());
      EXPECT_EQ((*values)[g][i], drawn_of((*all)[0][0], row)) << g << ", " << i;
    }
  }
}

}  // namespace troupe::learn
