// A learned reward model scores texts: at the last token, after its end-of-sequence token, the same
// bits in any batch, and a cause instead of a score where there can be none.
#include "actors/reward/model_reward.hpp"

#include "actors/reward/queued_reward.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/params.hpp"
#include "runtime/model/score.hpp"
#include "tests/unit/actors/reward/answered.hpp"
#include "tests/unit/actors/reward/calls_stage.hpp"
#include "tests/unit/actors/reward/tiny_body.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"
#include "tests/unit/runtime/text/byte_tokenizer.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::reward {
namespace {

constexpr std::int64_t kModelContext = 96;

class ModelReward : public testing::Test {
 protected:
  ModelReward() {
    params_ = std::make_unique<model::ParamStore>(model::with_score_head(tiny_body(kModelContext)));
    model::randomise(*params_, 21, 0.2f);
    EXPECT_TRUE(model::save_model(*params_, folder(), model::StorageDtype::kF32, ""));
    troupe::test::write_byte_tokenizer(folder());
  }

  std::filesystem::path folder() const { return temp_ / "rm"; }

  std::unique_ptr<RewardSource> make(std::int64_t rows_max = 2048,
                                     bool normalise = false,
                                     bool as_chat = false) {
    ModelRewardOptions options;
    options.folder = folder();
    options.rows_max = rows_max;
    options.normalise = normalise;
    options.columns.apply_chat_template = as_chat;
    options.columns.input_key = "prompt";
    auto made = make_model_reward(std::move(options), team_);
    EXPECT_TRUE(made) << made.error().message;
    return made ? std::move(*made) : nullptr;
  }

  // The score of bytes and one end token, computed alone and without the source.
  double by_hand(const std::string& text) {
    std::vector<std::int32_t> ids;
    for (const char c : text)
      ids.push_back(static_cast<unsigned char>(c));
    ids.push_back(256);
    model::SampleGroup group;
    group.prompt = std::span(ids).first(1);
    group.responses.push_back(std::span(ids).subspan(1));
    const model::SampleGroup groups[] = {group};
    model::GroupPlan plan;
    EXPECT_TRUE(model::build_group_plan(groups, params_->spec(), 1, plan, model::GroupRows::kLast));
    model::PackedWeights packed(params_->spec());
    packed.fill(core::Team{}, *params_, 0);
    model::ScoreScratch scratch;
    std::vector<float> value(1);
    model::score_values(team_, packed, plan.plan, scratch, value);
    return static_cast<double>(value[0]);
  }

  static std::vector<RewardGroup> items() {
    return {answered("12+7=", "19"), answered("12+7=", "nineteen"), answered("12+7=", ""),
            answered("other", " text\n\n")};
  }

  troupe::test::TempFolder temp_;
  core::SerialTeam team_;
  std::unique_ptr<model::ParamStore> params_;
};

}  // namespace

TEST_F(ModelReward, ReadsTheScoreAtTheEndTokenOfPromptAndResponse) {
  auto source = make();
  const auto scores = source->score(items(), {});
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_EQ((*scores)[0].value, by_hand("12+7=19"));
  EXPECT_EQ((*scores)[1].value, by_hand("12+7=nineteen"));
  EXPECT_EQ((*scores)[2].value, by_hand("12+7="));
  EXPECT_EQ((*scores)[3].value, by_hand("other text")) << "line ends at the end are left out";
  EXPECT_NE((*scores)[0].value, (*scores)[1].value);
}

TEST_F(ModelReward, HasTheSameBitsInAnyBatch) {
  const auto together = make()->score(items(), {});
  ASSERT_TRUE(together);
  for (const std::int64_t rows : {1, 12, 20}) {
    auto source = make(rows);
    const auto cut = source->score(items(), {});
    ASSERT_TRUE(cut);
    for (std::size_t i = 0; i < items().size(); ++i) {
      EXPECT_EQ((*cut)[i].value, (*together)[i].value) << i << " at " << rows;
      const auto alone = source->score({items()[i]}, {});
      ASSERT_TRUE(alone);
      EXPECT_EQ(alone->front().value, (*together)[i].value) << i;
    }
  }
}

TEST_F(ModelReward, CallsThatWaitAreOnePassWithTheSameBits) {
  const auto together = make()->score(items(), {});
  ASSERT_TRUE(together);
  CallsStage stage(make_queued_reward(make()));
  std::vector<RewardGroup> calls;
  for (int i = 0; i < 20; ++i)
    calls.push_back(items()[static_cast<std::size_t>(i) % 4]);
  const auto answers = stage.score(calls, std::chrono::minutes(1));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ASSERT_TRUE(answers[i]);
    EXPECT_EQ(answers[i]->front().value, (*together)[i % 4].value) << i;
  }
  EXPECT_LE(stage.amount("jobs"), 3) << "the first call may go alone";
}

TEST_F(ModelReward, ATextBeyondTheContextHasACauseAndNoScore) {
  auto source = make();
  auto batch = items();
  batch[1].samples[0].response = std::string(120, 'x');
  const auto scores = source->score(batch, {});
  ASSERT_TRUE(scores);
  EXPECT_FALSE((*scores)[1].value.has_value());
  EXPECT_NE((*scores)[1].cause.find("126 tokens, the reward model's context is 96"),
            std::string::npos)
      << (*scores)[1].cause;
  EXPECT_TRUE((*scores)[0].value && (*scores)[2].value) << "the others have theirs";
}

TEST_F(ModelReward, AnEmptyTextHasNoScore) {
  const auto scores = make()->score({answered("", "")}, {});
  ASSERT_TRUE(scores);
  EXPECT_FALSE(scores->front().value.has_value());
}

TEST_F(ModelReward, NormalisesByWhatTheModelsConfigStores) {
  const auto plain = make()->score(items(), {});
  auto spec = params_->spec();
  spec.score_mean = 0.75;
  spec.score_std = 0.5;
  model::ParamStore stored(spec);
  std::copy_n(params_->data(), params_->size(), stored.data());
  std::filesystem::remove_all(folder());
  ASSERT_TRUE(model::save_model(stored, folder(), model::StorageDtype::kF32, ""));
  troupe::test::write_byte_tokenizer(folder());
  const auto normalised = make(2048, true)->score(items(), {});
  const auto left = make(2048, false)->score(items(), {});
  ASSERT_TRUE(plain && normalised && left);
  EXPECT_DOUBLE_EQ(*(*normalised)[0].value, (*(*plain)[0].value - 0.75) / 0.5);
  EXPECT_EQ((*left)[0].value, (*plain)[0].value);
}

TEST_F(ModelReward, RendersChatsByItsOwnTemplate) {
  std::ofstream(folder() / "chat_template.jinja")
      << "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";
  auto source = make(2048, false, true);
  ASSERT_NE(source, nullptr);
  const auto scores = source->score(
      {answered("<the policy's own rendering>", "9", "", R"({"prompt": "2+7"})"),
       answered(
           "x", "9", "",
           R"({"prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "2+7"}]})"),
       answered("x", "9", "", R"({"question": "2+7"})")},
      {});
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_EQ((*scores)[0].value, by_hand("[user]2+7[assistant]9"));
  EXPECT_EQ((*scores)[1].value, by_hand("[system]s[user]2+7[assistant]9"));
  EXPECT_FALSE((*scores)[2].value.has_value());
  EXPECT_NE((*scores)[2].cause.find("no column 'prompt'"), std::string::npos);
}

TEST_F(ModelReward, AFolderWithoutAScoreHeadIsRefusedByName) {
  const auto language = temp_ / "lm";
  model::ParamStore params(tiny_body(kModelContext));
  model::randomise(params, 2, 0.2f);
  ASSERT_TRUE(model::save_model(params, language, model::StorageDtype::kF32, ""));
  troupe::test::write_byte_tokenizer(language);
  ModelRewardOptions options;
  options.folder = language;
  const auto refused = make_model_reward(std::move(options), team_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::ErrorCode::kConfig);
  EXPECT_NE(refused.error().message.find("has no score head"), std::string::npos);
  EXPECT_NE(refused.error().message.find("reward.model_name_or_path"), std::string::npos);
}

}  // namespace troupe::actors::reward
