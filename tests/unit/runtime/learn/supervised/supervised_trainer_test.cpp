// Steps on a tiny model: packing does not change what is learned, threads do not change a bit,
// state comes back, and a loss that is not finite is skipped.
#include "runtime/learn/supervised/supervised_trainer.hpp"

#include "runtime/learn/supervised/row_checks.hpp"
#include "tests/unit/runtime/learn/fixture.hpp"
#include "tests/unit/runtime/model/device_team.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

namespace troupe::learn {
namespace {

namespace fs = std::filesystem;

// Token b is the letter 'A' + b, token 66 the end: as many as the fixture's model has.
text::Tokenizer letters() {
  std::string vocab = R"("<e>": 66)";
  for (int b = 0; b < 66; ++b) {
    std::string letter(1, static_cast<char>('!' + b));
    if (letter == "\"" || letter == "\\") letter = "\\" + letter;
    vocab += ", \"" + letter + "\": " + std::to_string(b);
  }
  const std::string json =
      R"({"version": "1.0", "truncation": null, "padding": null, "normalizer": null,
          "added_tokens": [{"id": 66, "content": "<e>", "single_word": false, "lstrip": false,
                            "rstrip": false, "normalized": false, "special": true}],
          "pre_tokenizer": null, "post_processor": null, "decoder": null,
          "model": {"type": "BPE", "dropout": null, "unk_token": null,
                    "continuing_subword_prefix": null, "end_of_word_suffix": null,
                    "fuse_unk": false, "byte_fallback": false, "merges": [], "vocab": {)" +
      vocab + "}}}";
  text::SpecialTokens special;
  special.eos = "<e>";
  auto tokenizer = text::Tokenizer::parse(json, special, "letters");
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return *tokenizer;
}

// A method, or one with a loss of the table.
struct Kind {
  Chosen<Method> method;
  std::optional<Chosen<PairLoss>> loss = {};

  Kind(Chosen<Method> of) : method(of) {}
  Kind(const char* of) : method(of) {}
  Kind(Chosen<Method> of, Chosen<PairLoss> with) : method(of), loss(with) {}
  const Method* operator->() const { return &*method; }
  void set(LossSettings& to) const {
    to.method = method;
    to.pair_loss = loss;
    if (method->steps()) to.reward_tokens = {'+' - '!', '-' - '!'};
    if (loss && (*loss)->smoothing == Smoothing::kNeeded) to.dpo.label_smoothing = 0.1;
  }
};

class SupervisedTrainerTest : public testing::TestWithParam<Kind> {
 protected:
  SupervisedTrainerTest()
      : folder_(fs::temp_directory_path() / ("troupe_supervised_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~SupervisedTrainerTest() override { fs::remove_all(folder_); }

  data::SupervisedDataset rows(const Kind& method) {
    std::ofstream out(folder_ / "rows.jsonl");
    core::Rng rng(4);
    const auto word = [&](std::uint64_t length) {
      std::string text;
      for (std::uint64_t i = 0; i < length; ++i)
        text += static_cast<char>('0' + rng.next_below(10));
      return text;
    };
    for (int i = 0; i < 6 && method->steps(); ++i) {
      out << R"({"input": ")" << word(9 + rng.next_below(12)) << "#" << word(4 + rng.next_below(12))
          << R"(#1", "label": [)" << (i % 2 == 0 ? R"("+", "-")" : "0.125, 1") << "]}\n";
    }
    for (int i = 0; i < 6 && !method->steps(); ++i) {
      out << R"({"input": ")" << word(3 + rng.next_below(20)) << R"(", "output": ")"
          << word(1 + rng.next_below(9)) << R"(", "chosen": "a)" << word(1 + rng.next_below(12))
          << R"(", "rejected": "b)" << word(1 + rng.next_below(5)) << R"(", "label": )"
          << (i % 2 == 0 ? "true" : "false") << R"(, "domain": ")" << (i % 3 == 0 ? "sums" : "x")
          << "\"}\n";
    }
    out.close();
    data::SupervisedColumns columns;
    columns.kind = method->rows;
    columns.label_key = "label";
    columns.prompt_key = "input";
    if (method->teacher) columns.domains = {"domain", {"sums", "other"}};
    columns.steps = {"#", '#' - '!', {"+", "-"}, {'+' - '!', '-' - '!'}, "\n"};
    const data::SupervisedLimits limits{.max_len = 100, .context = 128, .vocab = 67};
    auto loaded = data::SupervisedDataset::load((folder_ / "rows.jsonl").string(), "data.dataset",
                                                columns, limits, letters(), nullptr);
    EXPECT_TRUE(loaded) << loaded.error().message;
    return std::move(*loaded);
  }

  static std::unique_ptr<model::ParamStore> params(const Kind& method) {
    model::ModelSpec spec = tiny_spec(false);
    if (method->scores) spec.head = model::HeadKind::kScore;
    auto store = std::make_unique<model::ParamStore>(spec);
    model::randomise(*store, 9, 0.15f);
    return store;
  }

  // Two random models, of as many layers as the trained one and of one more.
  static void add_teachers(SupervisedSettings& settings) {
    model::ModelSpec deeper = tiny_spec(false);
    ++deeper.layers;
    settings.teachers = {frozen_model(21), frozen_model(22, deeper)};
  }

  static std::unique_ptr<SupervisedTrainer> trainer(const Kind& method,
                                                    core::TeamRunner& team,
                                                    std::int64_t micro = 2048,
                                                    std::int64_t lora_rank = 0) {
    SupervisedSettings settings;
    settings.optim.trained.lora.rank = lora_rank;
    method.set(settings.loss);
    settings.optim.adam.lr = 1e-3;
    settings.optim.adam.eps = 1e-4;
    settings.optim.nonfinite_steps_max = 1;
    settings.micro_tokens_max = micro;
    settings.total_steps = 10;
    if (method->teacher) add_teachers(settings);
    auto made = SupervisedTrainer::create(params(method), nullptr, settings, team);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }

  static std::vector<float> weights(const SupervisedTrainer& trainer) {
    return model::numbers_of(trainer.master());
  }

  fs::path folder_;
};

const std::vector<std::uint64_t> kAll = {3, 0, 5, 1, 4, 2};

TEST_P(SupervisedTrainerTest, PackingDoesNotChangeWhatIsLearned) {
  const auto data = rows(GetParam());
  core::SerialTeam team;
  const auto whole = trainer(GetParam(), team), cut = trainer(GetParam(), team, 45);
  for (int step = 0; step < 3; ++step) {
    const auto a = whole->step(data.rows(kAll)), b = cut->step(data.rows(kAll));
    ASSERT_TRUE(a && b);
    EXPECT_EQ(a->micro_batches, GetParam()->teacher ? 2 : 1) << "one for each teacher";
    EXPECT_GT(b->micro_batches, 2);
    EXPECT_NEAR(a->metrics[0].second, b->metrics[0].second, 1e-5) << a->metrics[0].first;
    EXPECT_EQ(a->targets, b->targets);
  }
  const auto a = weights(*whole), b = weights(*cut);
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], 1e-5) << i;
}

// Rows of one prompt, some with equal answers, in one pass over it and each by itself.
TEST_P(SupervisedTrainerTest, RowsThatShareAPromptLearnWhatTheyLearnAlone) {
  if (GetParam()->steps() || GetParam()->teacher) GTEST_SKIP() << "rows are sequences";
  const data::Tokens p = {1, 2, 3, 4, 5, 6}, q = {1, 2, 3}, a = {7, 8, 66}, b = {9, 66},
                     c = {7, 66};
  const bool pairs = GetParam()->pairs(), answers = pairs || GetParam()->rated();
  std::vector<data::TokenRow> made;
  for (const auto& [prompt, first, second] :
       {std::tuple{p, a, b}, {q, a, b}, {p, a, c}, {q, c, a}, {p, b, c}}) {
    made.push_back({answers ? prompt : data::Tokens(), first, pairs ? second : data::Tokens()});
  }
  const auto data = data::SupervisedDataset::of_tokens(made);
  std::int64_t longest = 0;
  for (const auto& row : data.all())
    longest = std::max(longest, row_cost(*GetParam().method, row));
  core::SerialTeam team;
  const auto together = trainer(GetParam(), team), alone = trainer(GetParam(), team, longest);
  for (int step = 0; step < 3; ++step) {
    const auto x = together->step(data.all()), y = alone->step(data.all());
    ASSERT_TRUE(x && y);
    EXPECT_EQ(x->micro_batches, 1);
    EXPECT_GT(y->micro_batches, 2);
    EXPECT_NEAR(x->metrics[0].second, y->metrics[0].second, 1e-5) << x->metrics[0].first;
    const auto of_all = together->evaluate(data.all()), of_each = alone->evaluate(data.all());
    ASSERT_TRUE(of_all && of_each);
    for (std::size_t i = 0; i < of_all->metrics.size(); ++i)
      EXPECT_NEAR(of_all->metrics[i].second, of_each->metrics[i].second, 1e-4)
          << of_all->metrics[i].first;
  }
  const auto x = weights(*together), y = weights(*alone);
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(x[i], y[i], 1e-5) << i;
}

// The figures of a category are those of its rows alone.
TEST_P(SupervisedTrainerTest, EachCategoryIsEvaluatedAsIfAlone) {
  const auto data = rows(GetParam());
  core::SerialTeam team;
  const auto one = trainer(GetParam(), team), other = trainer(GetParam(), team);
  const auto figures = [](const auto& evaluated) {
    EXPECT_TRUE(evaluated);
    return std::map<std::string, double>(evaluated->metrics.begin(), evaluated->metrics.end());
  };
  auto all = data.rows(kAll);
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i].category = i < 2 ? "hard" : i < 5 ? "easy" : "";
  const auto together = figures(one->evaluate(all));
  EXPECT_EQ(together.contains("eval/hard/pairs"), GetParam()->pairs());
  if (!GetParam()->pairs()) return;
  const auto hard = figures(other->evaluate(std::span(all).first(2)));
  EXPECT_EQ(together.at("eval/hard/pairs"), 2);
  EXPECT_EQ(together.at("eval/easy/pairs"), 3);
  EXPECT_EQ(together.at("eval/hard/accuracy"), hard.at("eval/accuracy"));
  EXPECT_DOUBLE_EQ(together.at("eval/hard/margins"), hard.at("eval/margins"));
  EXPECT_EQ(hard.at("eval/hard/accuracy"), hard.at("eval/accuracy"));
}

// The load-balancing loss goes with every kind of loss.
TEST_P(SupervisedTrainerTest, ExpertsAreBalancedBesideTheLoss) {
  const auto data = rows(GetParam());
  core::SerialTeam one;
  ThreadTeam three(3);
  const auto make = [&](core::TeamRunner& team, double coef, std::int64_t micro) {
    model::ModelSpec spec = tiny_moe_spec();
    if (GetParam()->scores) spec.head = model::HeadKind::kScore;
    auto store = std::make_unique<model::ParamStore>(spec);
    model::randomise(*store, 9, 0.2f);
    SupervisedSettings settings;
    GetParam().set(settings.loss);
    settings.optim.aux_loss_coef = coef;
    settings.optim.adam.lr = 1e-3;
    settings.micro_tokens_max = micro;
    settings.total_steps = 10;
    if (GetParam()->teacher) add_teachers(settings);
    auto made = SupervisedTrainer::create(std::move(store), nullptr, settings, team);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  };
  const auto metric = [](const SupervisedStep& step, std::string_view name) {
    for (const auto& [key, value] : step.metrics)
      if (key == name) return value;
    return -1.0;
  };
  const auto plain = make(one, 0, 45), a = make(one, 0.25, 45), b = make(three, 0.25, 45);
  const auto without = plain->step(data.rows(kAll)), first = a->step(data.rows(kAll));
  ASSERT_TRUE(without && first && b->step(data.rows(kAll)));
  EXPECT_GT(first->micro_batches, 2);
  EXPECT_EQ(metric(*without, "policy/aux_loss"), -1);
  const double aux = metric(*first, "policy/aux_loss");
  EXPECT_GT(aux, 2);
  EXPECT_LT(aux, 6);
  EXPECT_NEAR(metric(*first, "policy/loss"), metric(*without, "policy/loss") + 0.25 * aux, 1e-9);
  EXPECT_NE(weights(*plain), weights(*a));
  EXPECT_EQ(weights(*a), weights(*b));
}

TEST_P(SupervisedTrainerTest, ThreadsDoNotChangeABitAndStateComesBack) {
  const auto data = rows(GetParam());
  core::SerialTeam one;
  ThreadTeam three(3);
  const auto a = trainer(GetParam(), one, 60), b = trainer(GetParam(), three, 60);
  const fs::path state = folder_ / "state";
  fs::create_directories(state);
  const auto c = trainer(GetParam(), one, 60);
  for (int step = 0; step < 4; ++step) {
    ASSERT_TRUE(a->step(data.rows(kAll)));
    ASSERT_TRUE(b->step(data.rows(kAll)));
    if (step == 1) {
      ASSERT_TRUE(a->save_state(state));
      ASSERT_TRUE(c->load_state(state));
    }
    if (step >= 2) {
      ASSERT_TRUE(c->step(data.rows(kAll)));
    }
  }
  EXPECT_EQ(weights(*a), weights(*b));
  EXPECT_EQ(weights(*a), weights(*c));
  EXPECT_EQ(c->version(), 4u);
}

TEST_P(SupervisedTrainerTest, ADeviceLearnsTheHostsBits) {
  std::string why;
  const auto device = model::make_device_team(why);
  if (device == nullptr) GTEST_SKIP() << why;
  if (GetParam()->teacher) GTEST_SKIP() << "teachers of a trainer are in the host's memory";
  const auto data = rows(GetParam());
  core::SerialTeam host;
  for (const std::int64_t lora_rank : {0, 3}) {
    const auto here = trainer(GetParam(), host, 60, lora_rank);
    const auto there = trainer(GetParam(), *device, 60, lora_rank);
    for (int step = 0; step < (lora_rank > 0 ? 1 : 3); ++step) {
      const auto a = here->step(data.rows(kAll)), b = there->step(data.rows(kAll));
      ASSERT_TRUE(a && b);
      EXPECT_EQ(b->metrics, a->metrics);
    }
    EXPECT_EQ(weights(*there), weights(*here));
    if (lora_rank > 0) continue;
    const auto a = here->evaluate(data.all()), b = there->evaluate(data.all());
    ASSERT_TRUE(a && b);
    EXPECT_EQ(b->metrics, a->metrics);
  }
}

TEST_P(SupervisedTrainerTest, TheLossFallsOnTheRowsItLearns) {
  const auto data = rows(GetParam());
  core::SerialTeam team;
  const auto trained = trainer(GetParam(), team);
  const auto before = trained->evaluate(data.all());
  for (int step = 0; step < 8; ++step)
    ASSERT_TRUE(trained->step(data.rows(kAll)));
  const auto after = trained->evaluate(data.all());
  ASSERT_TRUE(before && after);
  EXPECT_EQ(before->metrics[0].first, "eval/loss");
  EXPECT_LT(after->metrics[0].second, before->metrics[0].second);
}

std::vector<Kind> all_kinds() {
  std::vector<Kind> kinds(Method::all().begin(), Method::all().end());
  for (const PairLoss& loss : PairLoss::all())
    if (loss.name != "sigmoid" && loss.name != "ipo") kinds.emplace_back("dpo", loss);
  return kinds;
}
INSTANTIATE_TEST_SUITE_P(Methods,
                         SupervisedTrainerTest,
                         testing::ValuesIn(all_kinds()),
                         [](const auto& test) {
                           const Kind& kind = test.param;
                           return std::string(kind.loss ? (*kind.loss)->name : kind->name);
                         });

using SupervisedSteps = SupervisedTrainerTest;

TEST_F(SupervisedSteps, TheFirstStepOfDpoKnowsNoPreference) {
  const auto data = rows("dpo");
  core::SerialTeam team;
  const auto step = trainer("dpo", team)->step(data.rows(kAll));
  ASSERT_TRUE(step);
  EXPECT_NEAR(step->metrics[0].second, std::log(2.0), 1e-12)
      << "policy and reference are the same bits";
}

double metric_of(const Metrics& metrics, std::string_view name) {
  for (const auto& [key, value] : metrics)
    if (key == name) return value;
  return std::nan("");
}

// Towards itself there is nothing to learn from the divergence.
TEST_F(SupervisedSteps, AModelThatIsItsOwnTeacherAgreesWithIt) {
  const auto data = rows("sft");
  core::SerialTeam team;
  SupervisedSettings settings;
  settings.loss.method = "distill";
  settings.loss.distill = {.coef = 1, .beta = 0.5, .temperature = 1.5};
  settings.total_steps = 10;
  settings.teachers.push_back(frozen_model(21));
  auto own = std::make_unique<model::ParamStore>(tiny_spec(false));
  model::randomise(*own, 21, 0.25f);
  auto made = SupervisedTrainer::create(std::move(own), nullptr, settings, team);
  ASSERT_TRUE(made) << made.error().message;
  const auto found = (*made)->evaluate(data.all());
  ASSERT_TRUE(found);
  EXPECT_EQ(metric_of(found->metrics, "eval/loss"), 0);
  EXPECT_EQ(metric_of(found->metrics, "eval/divergence"), 0);
  EXPECT_EQ(metric_of(found->metrics, "eval/agreement"), 1);
  const auto step = (*made)->step(data.rows(kAll));
  ASSERT_TRUE(step);
  EXPECT_NEAR(metric_of(step->metrics, "policy/grad_norm"), 0, 1e-6);
}

// A row learns from the teacher of its domain: from the other, the divergence is another one.
TEST_F(SupervisedSteps, RowsHaveTheTeachersOfTheirDomains) {
  const auto data = rows("distill");
  core::SerialTeam team;
  std::vector<double> found;
  for (const bool swapped : {false, true}) {
    SupervisedSettings settings;
    settings.loss.method = "distill";
    settings.total_steps = 10;
    add_teachers(settings);
    if (swapped) std::swap(settings.teachers[0], settings.teachers[1]);
    auto made = SupervisedTrainer::create(params("distill"), nullptr, settings, team);
    ASSERT_TRUE(made);
    for (const std::uint64_t row : {0u, 1u}) {
      const auto alone = (*made)->evaluate(std::vector{data.row(row)});
      ASSERT_TRUE(alone);
      found.push_back(metric_of(alone->metrics, "eval/divergence"));
    }
  }
  EXPECT_NE(found[0], found[2]);
  EXPECT_NE(found[1], found[3]);
  data::SupervisedRow stray = data.row(0);
  stray.teacher = 2;
  SupervisedSettings settings;
  settings.loss.method = "distill";
  add_teachers(settings);
  auto made = SupervisedTrainer::create(params("distill"), nullptr, settings, team);
  const auto refused = (*made)->step(std::vector{stray});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("rows.jsonl:1 has teacher 3, of 2"), std::string::npos)
      << refused.error().message;
}

TEST_F(SupervisedSteps, ATeacherMustBeThereAndHaveTheVocabulary) {
  core::SerialTeam team;
  SupervisedSettings settings;
  settings.loss.method = "distill";
  const auto none = SupervisedTrainer::create(params("distill"), nullptr, settings, team);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "teacher.model_name_or_path must be given");
  model::ModelSpec spec = tiny_spec(false);
  spec.vocab += 1;
  settings.teachers.push_back(frozen_model(21, spec));
  const auto other = SupervisedTrainer::create(params("distill"), nullptr, settings, team);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("a model with the vocabulary of the trained one"),
            std::string::npos);
}

TEST_F(SupervisedSteps, ARowThatNoMicroBatchHoldsIsNamed) {
  const auto data = rows("dpo");
  SupervisedSettings settings;
  settings.loss.method = Chosen<Method>("dpo");
  settings.micro_tokens_max = 10;
  const auto checked = check_rows(data, settings);
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("rows.jsonl:1 needs"), std::string::npos);
  EXPECT_NE(checked.error().message.find("--train.micro_tokens_max"), std::string::npos);
}

TEST_F(SupervisedSteps, ANonFiniteStepIsSkippedAndTheSecondEndsTheRun) {
  const auto data = rows("sft");
  core::SerialTeam team;
  auto broken = params("sft");
  broken->data()[broken->layout().final_norm] = std::nanf("");
  SupervisedSettings settings;
  settings.optim.nonfinite_steps_max = 1;
  settings.total_steps = 10;
  auto made = SupervisedTrainer::create(std::move(broken), nullptr, settings, team);
  ASSERT_TRUE(made);
  const auto first = (*made)->step(data.rows(kAll));
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->applied);
  const auto second = (*made)->step(data.rows(kAll));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, core::ErrorCode::kNumeric);
  EXPECT_NE(second.error().message.find("rows.jsonl:4 to "), std::string::npos)
      << second.error().message;
}

}  // namespace
}  // namespace troupe::learn
