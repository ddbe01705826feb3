// A supervised run on the loopback network, with a trainer that notes what it is asked for: which
// rows make which step, in which order the run steps, evaluates and saves, and what a request that
// is repeated gets.
#include "actors/protocol/ask.hpp"
#include "actors/protocol/limits.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "actors/supervised/rows_role.hpp"
#include "actors/supervised/step_controller.hpp"
#include "actors/supervised/supervised_role.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/cluster/loopback/loopback.hpp"
#include "tests/unit/actors/host_support.hpp"
#include "tests/unit/actors/supervised/noting_trainer.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <future>

namespace troupe::actors::testing {
namespace {

using Texts = std::vector<std::string>;

Texts operator+(Texts left, const Texts& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

// `count` sequences; row i begins with the token `first` + i.
std::shared_ptr<const troupe::data::SupervisedDataset> sequences(std::int32_t first,
                                                                 std::uint64_t count,
                                                                 std::size_t tokens = 3) {
  std::vector<troupe::data::TokenRow> rows(count);
  for (std::size_t i = 0; i < count; ++i) {
    rows[i].answer.assign(tokens, 1);
    rows[i].answer.front() = first + static_cast<std::int32_t>(i);
  }
  return std::make_shared<const troupe::data::SupervisedDataset>(
      troupe::data::SupervisedDataset::of_tokens(rows));
}

troupe::data::BlendOrder order_of(const troupe::data::SupervisedDataset& rows) {
  auto order = troupe::data::BlendOrder::create(rows.set_rows(), {}, 42);
  EXPECT_TRUE(order);
  return *order;
}

class Listener final : public controller::RunListener {
 public:
  Listener(Calls& calls, std::filesystem::path folder)
      : calls_(calls), folder_(std::move(folder)) {}
  void on_phase(const std::string&) override {}
  void on_failed_group(const controller::FailedGroup&) override {}
  core::Result<void> on_update(const controller::UpdateReport& report) override {
    reports.push_back(report);
    return {};
  }
  core::Result<void> on_evaluation(const controller::EvaluationReport&) override { return {}; }
  core::Result<void> on_figures(std::uint64_t done,
                                const controller::Metrics& figures,
                                const std::string& line) override {
    lines.push_back(line);
    EXPECT_EQ(figures.back().first, "time/eval");
    if (done == best_at) best = done;
    return {};
  }
  core::Result<std::filesystem::path> begin_checkpoint(std::uint64_t done) override {
    const auto folder = folder_ / ("step_" + std::to_string(done));
    std::filesystem::create_directories(folder);
    return folder;
  }
  async::task<core::Result<std::filesystem::path>> commit_checkpoint(std::uint64_t done) override {
    static_cast<void>(calls_.note("commit " + std::to_string(done)));
    co_return std::filesystem::path("/saved");
  }
  bool is_best(std::uint64_t done) const override { return best == done; }
  bool stop_requested() const override { return reports.size() >= stop_after; }

  std::vector<controller::UpdateReport> reports;
  Texts lines;
  std::uint64_t best_at = 1000, best = 2000;
  std::size_t stop_after = 1000;

 private:
  Calls& calls_;
  const std::filesystem::path folder_;
};

class SupervisedPlay : public ::testing::Test {
 protected:
  SupervisedPlay() : device_("compute"), io_(1), network_(timers_), listener_(calls_, folder_) {
    plan_.unit = "step";
    plan_.logs_groups = false;
    plan_.groups = 2;
    plan_.updates = plan_.logged_until = 3;
    steps_.epoch_rows = 5;
    steps_.dump_rows = [](std::uint64_t step) {
      return core::Result<std::string>("rows_of_" + std::to_string(step));
    };
    training_ = sequences(10, 5);
  }
  ~SupervisedPlay() override {
    for (auto place = hosts_.rbegin(); place != hosts_.rend(); ++place)
      io_.run((*place)->stop());
    device_.close();
    io_.join();
    std::filesystem::remove_all(folder_);
  }

  void host(const std::string& name, cluster::RoleHost::Factory factory) {
    auto endpoint = network_.join({name, core::RunId{9}, 1}, io_.make_strand());
    hosts_.push_back(std::make_unique<cluster::RoleHost>(
        std::move(*endpoint), cluster::RoleHost::Hooks{}, &device_, &team_));
    io_.run(start_host(hosts_.back().get(), std::move(factory)));
  }
  void host_data_and_trainer(bool scores = false) {
    supervised::TrainingRows rows{troupe::data::held_rows(training_, order_of(*training_)),
                                  held_out_};
    host("data/0", factory_of<supervised::RowsRole>([rows](RoleContext) {
           return std::make_shared<supervised::RowsRole>(rows);
         }));
    host("policy/0", factory_of<supervised::SupervisedRole>([this, scores](RoleContext context) {
           return std::make_shared<supervised::SupervisedRole>(
               std::move(context), std::make_unique<NotingTrainer>(calls_), "data/0", "/model",
               scores);
         }));
  }
  // Runs `body(context)` as a role to its end.
  template <class Body>
  void play(Body body);
  core::Result<void> run();

  std::string step_text(std::uint64_t step) {
    troupe::data::BlendOrder order = order_of(*training_);
    std::string text = "step";
    for (std::uint64_t place = 2 * step; place < 2 * step + 2; ++place) {
      const std::uint64_t row = order.row_at(place);
      text += " " + std::to_string(row) + ":" + std::to_string(10 + row) + "l3";
    }
    return text;
  }

  // What is asked of the trainer when a checkpoint of that step is made.
  Texts saved(int step, bool model = true) const {
    const std::string folder = (folder_ / ("step_" + std::to_string(step))).string();
    Texts calls = {"save_state " + folder + "/policy"};
    if (model) calls.push_back("save_model " + folder + "/model");
    calls.push_back("commit " + std::to_string(step));
    return calls;
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      ("troupe_play_" + std::to_string(::getpid()) +
       ::testing::UnitTest::GetInstance()->current_test_info()->name());
  Calls calls_;
  core::SerialTeam team_;
  async::SteadyTimers timers_;
  async::DeviceThread device_;
  async::IoThreads io_;
  cluster::LoopbackNetwork network_;
  std::vector<std::unique_ptr<cluster::RoleHost>> hosts_;
  Listener listener_;
  controller::RunPlan plan_;
  supervised::StepPlan steps_;
  std::shared_ptr<const troupe::data::SupervisedDataset> training_, held_out_;
};

// A role that only runs a body.
template <class Body>
class BodyRole final : public cluster::Role {
 public:
  BodyRole(RoleContext context, Body body, std::promise<void>* over)
      : context_(std::move(context)), body_(std::move(body)), over_(over) {}
  async::task<core::Result<wire::Frame>> handle(wire::Frame) override {
    co_return core::fail(core::ErrorCode::kUnsupported, "answers nothing");
  }
  async::task<core::Result<void>> run() override {
    auto body = body_(context_);
    co_await std::move(body);
    over_->set_value();
    co_return core::Result<void>();
  }

 private:
  RoleContext context_;
  Body body_;
  std::promise<void>* over_;
};

template <class Body>
void SupervisedPlay::play(Body body) {
  std::promise<void> over;
  host("controller/0",
       [&](const cluster::RoleServices& services) -> core::Result<std::unique_ptr<cluster::Role>> {
         return std::unique_ptr<cluster::Role>(
             std::make_unique<BodyRole<Body>>(context_of(services), body, &over));
       });
  ASSERT_EQ(over.get_future().wait_for(std::chrono::minutes(2)), std::future_status::ready);
}

async::task<void> conduct(std::shared_ptr<supervised::StepController> controller,
                          std::string checkpoint,
                          core::Result<void>* ended) {
  auto loaded = controller->load(checkpoint);
  *ended = co_await std::move(loaded);
  if (!*ended) co_return;
  auto body = controller->run();
  *ended = co_await std::move(body);
}

core::Result<void> SupervisedPlay::run() {
  core::Result<void> ended;
  play([&](RoleContext context) {
    return conduct(std::make_shared<supervised::StepController>(context, plan_, steps_, listener_),
                   plan_.first_update > 0 ? "/checkpoint" : "", &ended);
  });
  return ended;
}

}  // namespace

TEST_F(SupervisedPlay, TakesTheRowsOfEachStepInTheSeededOrderAndSavesTheLast) {
  host_data_and_trainer();
  const auto ended = run();
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(calls_.made(), (Texts{step_text(0), step_text(1), step_text(2)} + saved(3)));
  ASSERT_EQ(listener_.reports.size(), 3u);
  std::string names;
  for (const auto& [name, value] : listener_.reports[1].metrics)
    names += name + " ";
  EXPECT_EQ(
      names,
      "policy/loss train/epoch train/targets train/micro_batches perf/tokens_per_s time/step ");
  EXPECT_EQ(listener_.reports[1].metrics[1].second, 4.0 / 5.0);
  EXPECT_EQ(listener_.reports[2].metrics[0].second, 1.0 / 3.0);
}

TEST_F(SupervisedPlay, EvaluatesOnAllHeldOutRowsAndKeepsTheScaleOfScores) {
  held_out_ = sequences(50, 3);
  plan_.updates = 2;
  plan_.evaluation_groups = 3;
  plan_.evaluation.steps = 1;
  listener_.best_at = 1;
  host_data_and_trainer(true);
  const auto ended = run();
  ASSERT_TRUE(ended) << ended.error().message;
  const std::string all = "evaluate 0:50l3 1:51l3 2:52l3";
  EXPECT_EQ(calls_.made(), (Texts{all, step_text(0), all} + saved(1) +
                            Texts{step_text(1), all, "scale 0.500000 2.000000"} + saved(2)))
      << "the best has its model, too";
  EXPECT_EQ(listener_.lines, (Texts{"held-out after 0 steps: loss 10 on 3 rows",
                                    "held-out after 1 steps: loss 9 on 3 rows",
                                    "held-out after 2 steps: loss 8 on 3 rows"}));
}

TEST_F(SupervisedPlay, AStopAsksForACheckpointWithoutAModel) {
  listener_.stop_after = 2;
  host_data_and_trainer();
  const auto ended = run();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, core::ErrorCode::kInterrupted);
  EXPECT_EQ(ended.error().message, "stopped after step 2; the same command continues from there");
  EXPECT_EQ(calls_.made(), (Texts{step_text(0), step_text(1)} + saved(2, false)));
}

// Its head is gone, the trainer is not: what it has learned and evaluated is told again, and
// nothing is computed or saved twice.
TEST_F(SupervisedPlay, AnotherControllerGoesOnWhereTheTrainerIs) {
  held_out_ = sequences(50, 1);
  plan_.evaluation_groups = 1;
  plan_.evaluation.steps = 1;
  listener_.stop_after = 2;
  host_data_and_trainer();
  EXPECT_FALSE(run());
  io_.run(hosts_.back()->stop());
  hosts_.pop_back();
  const Texts before = calls_.made();
  listener_.stop_after = 1000;
  const auto first_life = std::exchange(listener_.reports, {});
  const auto ended = run();
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(calls_.made(), (before + Texts{step_text(2), "evaluate 0:50l3"} + saved(3)));
  ASSERT_EQ(listener_.reports.size(), 3u);
  for (const std::size_t step : {0u, 1u})
    EXPECT_EQ(listener_.reports[step].metrics[0], first_life[step].metrics[0]);
  EXPECT_EQ(listener_.lines.size(), 3u + 4u);
}

TEST_F(SupervisedPlay, ASessionGoesOnAfterItsCheckpoint) {
  plan_.first_update = 2;
  host_data_and_trainer();
  const auto ended = run();
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(calls_.made()[0], "load_state /checkpoint/policy");
  EXPECT_EQ(calls_.made()[1], step_text(2));
}

TEST_F(SupervisedPlay, TheRowsOfAStepThatIsNotFiniteAreLeftForTheUser) {
  calls_.fail_at(step_text(1), {core::ErrorCode::kNumeric, "NaN"});
  host_data_and_trainer();
  const auto ended = run();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, core::ErrorCode::kNumeric);
  EXPECT_NE(ended.error().message.find("NaN; the rows of that step are in rows_of_1"),
            std::string::npos)
      << ended.error().message;
}

TEST_F(SupervisedPlay, AStepThatAMoreLivelyTrainerMayTakeIsForAnotherSession) {
  calls_.fail_at(step_text(1), {core::ErrorCode::kResources, "no memory"});
  plan_.restarts = true;
  host_data_and_trainer();
  const auto ended = run();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, core::ErrorCode::kPeerLost);
  EXPECT_NE(ended.error().message.find("step 2 failed (1 of 3): "), std::string::npos)
      << ended.error().message;
}

namespace {

struct Answers {
  std::vector<core::Result<Trained>> steps, evaluations;
};

async::task<void> ask_twice(RoleContext context, Answers* answers) {
  const LoadState load{"", 0};
  static_cast<void>(co_await ask(context, "policy/0", load));
  for (const std::uint64_t update : {0u, 0u, 1u, 0u}) {
    const TrainUpdate step{update, 2};
    answers->steps.push_back(co_await ask(context, "policy/0", step));
    const EvaluateRows rows{update + 1, false};
    answers->evaluations.push_back(co_await ask(context, "policy/0", rows));
  }
  const EvaluateRows never{0, false};
  answers->evaluations.push_back(co_await ask(context, "policy/0", never));
}

struct Pages {
  std::vector<std::size_t> sizes;
  std::vector<std::uint64_t> ids;
  std::uint64_t total = 0;
  std::optional<core::Error> past_the_end;
};

async::task<void> fetch_all(RoleContext context, Pages* pages) {
  while (pages->ids.size() < 5) {
    const FetchRows fetch{true, pages->ids.size(), 0};
    auto page = co_await ask(context, "data/0", fetch);
    if (!page) co_return;
    pages->sizes.push_back(page->rows.size());
    pages->total = page->total;
    for (const TrainingRow& row : page->rows)
      pages->ids.push_back(row.id);
  }
  const FetchRows past{true, 5, 0};
  auto page = co_await ask(context, "data/0", past);
  if (!page) pages->past_the_end = page.error();
}

}  // namespace

TEST_F(SupervisedPlay, ARepeatedRequestIsAnsweredAndNothingIsLearnedTwice) {
  held_out_ = sequences(50, 1);
  host_data_and_trainer();
  Answers answers;
  play([&](RoleContext context) { return ask_twice(context, &answers); });
  EXPECT_EQ(calls_.made(),
            (Texts{step_text(0), "evaluate 0:50l3", step_text(1), "evaluate 0:50l3"}));
  ASSERT_EQ(answers.steps.size(), 4u);
  for (const std::size_t again : {1u, 3u}) {
    ASSERT_TRUE(answers.steps[again] && answers.evaluations[again]);
    EXPECT_EQ(answers.steps[again]->metrics, answers.steps[0]->metrics);
    EXPECT_EQ(answers.evaluations[again]->metrics, answers.evaluations[0]->metrics);
  }
  ASSERT_FALSE(answers.evaluations.back());
  EXPECT_NE(answers.evaluations.back().error().message.find("but the policy has taken 2"),
            std::string::npos);
}

// The request of a step that fails comes twice: the second may not work with what the first has
// left.
TEST_F(SupervisedPlay, ATrainerThatFailedInAStepIsNotUsedAgain) {
  held_out_ = sequences(50, 1);
  calls_.fail_at(step_text(0), {core::ErrorCode::kResources, "no memory"});
  host_data_and_trainer();
  Answers answers;
  play([&](RoleContext context) { return ask_twice(context, &answers); });
  EXPECT_EQ(calls_.made(), Texts{step_text(0)});
  ASSERT_EQ(answers.steps.size(), 4u);
  EXPECT_EQ(answers.steps[0].error().code, core::ErrorCode::kResources);
  for (const std::size_t later : {1u, 2u, 3u})
    EXPECT_EQ(answers.steps[later].error().code, core::ErrorCode::kPeerLost);
  EXPECT_EQ(answers.evaluations.back().error().code, core::ErrorCode::kPeerLost);
}

// Of rows of 1.5 MiB (five bytes a token) a page of 4 MiB has two.
TEST_F(SupervisedPlay, HeldOutRowsComeInPagesThatAreBounded) {
  static_assert(actors::limits::kPage_bytes == 4u << 20);
  held_out_ = sequences(50, 5, 314'000);
  host_data_and_trainer();
  Pages pages;
  play([&](RoleContext context) { return fetch_all(context, &pages); });
  EXPECT_EQ(pages.ids, (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(pages.sizes, (std::vector<std::size_t>{2, 2, 1}));
  EXPECT_EQ(pages.total, 5u);
  ASSERT_TRUE(pages.past_the_end);
  EXPECT_EQ(pages.past_the_end->code, core::ErrorCode::kInvalidArgument);
}

}  // namespace troupe::actors::testing
