// Ranks when something goes wrong: steps that are not finite, other numbers of ranks on a resume,
// a rank that is gone, ranks without a lane.
#include "tests/unit/runtime/learn/ranks/rank_runs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace troupe::learn {
namespace {

namespace fs = std::filesystem;

TrainerSettings ranked(const Ranks& ranks, std::int64_t lanes = 8) {
  TrainerSettings settings;
  settings.optim.adam.lr = 1e-2;
  settings.optim.lanes = lanes;
  settings.optim.ranks = ranks;
  settings.batch.micro_tokens_max = 64;
  settings.total_steps = 12;
  return settings;
}

std::unique_ptr<PolicyTrainer> make_ranked(const TrainerSettings& settings,
                                           core::TeamRunner& team) {
  auto made = PolicyTrainer::create(test::start_weights(tiny_spec()), settings, team);
  EXPECT_TRUE(made) << made.error().message;
  return std::move(made).value();
}

// Groups sampled by the weights before the run, in which token 66 is not, or in one prompt.
std::vector<experience::Group> groups_with(std::uint64_t update, bool bad) {
  core::SerialTeam team;
  const auto start = test::start_weights(tiny_spec(false));
  model::PackedWeights packed(start->spec());
  team.run([&](core::Team member) { packed.fill(member, *start, 0); });
  auto groups = random_groups(packed, update, 6, 4);
  const auto replace = [](std::vector<std::int32_t>& tokens) {
    std::replace(tokens.begin(), tokens.end(), 66, 65);
  };
  for (auto& group : groups) {
    replace(group.prompt);
    for (auto& sample : group.samples)
      replace(sample.tokens);
  }
  if (bad) groups[1 + update].prompt[0] = 66;
  return groups;
}

using Rows = std::vector<std::pair<std::string, double>>;

// Updates that are bad, good and bad twice, by a model whose vector of token 66 is not a number, so
// that some lanes have a loss that is none either. The words are those of the error at the end.
void some_bad_updates(const TrainerSettings& settings, Rows& rows, std::string& words) {
  core::SerialTeam team;
  auto params = test::start_weights(tiny_spec(false));
  params->view("model.embed_tokens.weight")[66 * 32] = std::numeric_limits<float>::quiet_NaN();
  auto made = PolicyTrainer::create(std::move(params), settings, team);
  ASSERT_TRUE(made) << made.error().message;
  for (std::uint64_t update = 0; update < 4; ++update) {
    const auto report = (*made)->update(groups_with(update, update != 1));
    if (!report) {
      words = report.error().message;
      return;
    }
    rows.emplace_back("micro", static_cast<double>(report->micro_batches));
    rows.insert(rows.end(), report->metrics.begin(), report->metrics.end());
  }
}

TEST(RankFailures, OneBadLossSkipsTheStepOfAll) {
  const troupe::test::TempFolder alone_folder, ranks_folder;
  TrainerSettings settings = ranked({});
  settings.optim.nonfinite_steps_max = 1;
  settings.dump_folder = alone_folder.path();
  Rows expected;
  std::string words;
  some_bad_updates(settings, expected, words);
  EXPECT_NE(words.find("the loss is not finite"), std::string::npos) << words;
  const auto dump_in = [](const fs::path& folder) {
    return troupe::test::read_file(fs::directory_iterator(folder)->path());
  };
  const std::string dumped = dump_in(alone_folder.path());
  for (int stage = 0; stage <= kZeroStage_max; ++stage) {
    test::run_ranks(3, [&](collective::Collectives& gang) {
      TrainerSettings own = settings;
      own.optim.ranks = {&gang, stage};
      own.dump_folder = ranks_folder.path();
      Rows rows;
      std::string said;
      some_bad_updates(own, rows, said);
      EXPECT_EQ(rows, expected);
      // But for the folder.
      EXPECT_EQ(said.substr(0, said.find("the batch")), words.substr(0, words.find("the batch")));
      EXPECT_TRUE(gang.barrier());
    });
    EXPECT_EQ(dump_in(ranks_folder.path()), dumped);
  }
}

// A gradient that overflows, in a tensor that only its owner looks at.
TEST(RankFailures, ABadGradientIsNamedByAll) {
  const auto words_of = [](const Ranks& ranks) {
    TrainerSettings settings = ranked(ranks);
    settings.optim.nonfinite_steps_max = 0;
    settings.algo.advantage.estimator = "dr_grpo";
    settings.algo.reward_clip_low = -1e301;
    settings.algo.reward_clip_high = 1e301;
    core::SerialTeam team;
    const auto trainer = make_ranked(settings, team);
    EXPECT_TRUE(trainer->gather());
    auto groups = random_groups(*trainer->packed(), 0, 6, 4);
    groups[2].samples[1].score = 1e300;
    const auto report = trainer->update(std::move(groups));
    return report ? std::string("well") : report.error().message;
  };
  const std::string expected = words_of({});
  EXPECT_NE(expected.find("the gradient of model."), std::string::npos) << expected;
  for (int stage = 0; stage <= kZeroStage_max; ++stage)
    test::run_ranks(3, [&](collective::Collectives& gang) {
      EXPECT_EQ(words_of({&gang, stage}), expected);
    });
}

TEST(RankFailures, AStateThatOneRankCannotReadIsRefusedByAll) {
  const troupe::test::TempFolder full, empty;
  core::SerialTeam team;
  ASSERT_TRUE(make_ranked(ranked({}), team)->save_state(full.path()));
  test::run_ranks(3, [&](collective::Collectives& gang) {
    core::SerialTeam own;
    const auto trainer = make_ranked(ranked({&gang, 1}), own);
    const auto loaded = trainer->load_state(gang.rank() == 2 ? empty.path() : full.path());
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code,
              gang.rank() == 2 ? core::ErrorCode::kNotFound : core::ErrorCode::kPeerLost);
  });
}

// A rank leaves between two updates: the others hear of it in the next one.
TEST(RankFailures, ALostRankIsPeerLostForTheOthers) {
  for (int stage = 0; stage <= kZeroStage_max; ++stage) {
    test::run_ranks(3, [&](collective::Collectives& gang) {
      core::SerialTeam team;
      const auto trainer = make_ranked(ranked({&gang, stage}), team);
      ASSERT_TRUE(trainer->gather());
      const auto groups = random_groups(*trainer->packed(), 0, 6, 4);
      ASSERT_TRUE(trainer->update(groups));
      if (gang.rank() == 1) return;
      const auto report = trainer->update(groups);
      ASSERT_FALSE(report);
      EXPECT_EQ(report.error().code, core::ErrorCode::kPeerLost) << report.error().message;
    });
  }
}

// A number that differs somewhere would not be noticed by the sizes of what ranks exchange.
TEST(RankFailures, RanksThatWereGivenOtherDataAreRefused) {
  test::run_ranks(3, [&](collective::Collectives& gang) {
    core::SerialTeam team;
    const auto trainer = make_ranked(ranked({&gang, 1}), team);
    auto groups = random_groups(*trainer->packed(), 0, 6, 4);
    const auto same = trainer->prepare(groups);
    EXPECT_TRUE(same);
    if (gang.rank() == 2) groups[3].samples[1].score = 0.123;
    const auto other = trainer->prepare(groups);
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code, core::ErrorCode::kInvalidArgument);
    EXPECT_NE(other.error().message.find("rank 2"), std::string::npos) << other.error().message;
  });
}

TEST(RankFailures, MoreRanksThanLanesAndUnknownStagesAreRefusedByTheKey) {
  test::run_ranks(3, [&](collective::Collectives& gang) {
    core::SerialTeam team;
    const auto refusal = [&](const TrainerSettings& settings) {
      const auto made = PolicyTrainer::create(test::start_weights(tiny_spec()), settings, team);
      EXPECT_FALSE(made);
      return made ? std::string() : made.error().message;
    };
    EXPECT_NE(refusal(ranked({&gang, 0}, 2)).find("--train.lanes"), std::string::npos);
    EXPECT_NE(refusal(ranked({&gang, 7})).find("train.zero_stage"), std::string::npos);
  });
}

}  // namespace
}  // namespace troupe::learn
