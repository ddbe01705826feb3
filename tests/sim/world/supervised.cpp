// Rows, a trainer and a listener of a supervised run.
#include "tests/sim/world/supervised.hpp"

#include "tests/sim/world/trainer_book.hpp"

#include <algorithm>
#include <optional>
#include <sstream>

namespace troupe::sim {
namespace {

using namespace std::chrono_literals;
using core::Result;
using data::SupervisedDataset;

std::shared_ptr<const SupervisedDataset> sequences(std::uint64_t first, std::uint64_t count) {
  std::vector<data::TokenRow> rows(count);
  for (std::uint64_t i = 0; i < count; ++i)
    rows[i].answer.assign(2 + i % 3, kTokenOfRow0 + static_cast<std::int32_t>(first + i));
  return std::make_shared<const SupervisedDataset>(SupervisedDataset::of_tokens(rows));
}

bool is_row(const data::SupervisedRow& row, const data::SupervisedRow& wanted) {
  return row.id == wanted.id && std::equal(row.answer.begin(), row.answer.end(),
                                           wanted.answer.begin(), wanted.answer.end());
}

class FakeSupervisedTrainer final : public OfBook<learn::SupervisedTrainer> {
 public:
  FakeSupervisedTrainer(Book book, Gangs& gangs, const WorldPlan& plan)
      : OfBook(std::move(book)),
        gangs_(gangs),
        plan_(plan),
        rows_(rows_of(plan)),
        placed_(rows_.training()) {}

  Result<learn::SupervisedStep> step(std::span<const data::SupervisedRow> rows) override {
    use();
    const std::uint64_t number = book_.updates();
    std::uint64_t hash = number;
    expect(rows.size() == plan_.groups, "a step without all of its rows");
    for (std::uint64_t i = 0; i < rows.size(); ++i) {
      const auto wanted = placed_->at(number * plan_.groups + i);
      expect(wanted && is_row(rows[i], *wanted),
             "step " + std::to_string(number + 1) + " has other rows");
      hash = mix(hash, rows[i].id);
    }
    half_way_ = true;
    TROUPE_TRY(book_.work());
    half_way_ = false;
    if (!book_.truth().learned.emplace(number, hash).second)
      book_.truth().census.count("event", "a step is taken again");
    book_.learn(hash);
    learn::SupervisedStep step;
    step.version = book_.version();
    step.applied = true;
    step.tokens = step.targets = static_cast<std::int64_t>(rows.size());
    step.micro_batches = 1;
    step.metrics = {{"policy/loss", figure()}};
    return step;
  }

  Result<learn::SupervisedEvaluation> evaluate(std::span<const data::SupervisedRow> rows) override {
    use();
    expect(rows.size() == kHeldOutRows, "an evaluation without all held-out rows");
    for (std::uint64_t i = 0; i < rows.size(); ++i)
      expect(is_row(rows[i], rows_.held_out->row(i)), "an evaluation on other rows");
    TROUPE_TRY(book_.work("evaluate"));
    expect(std::exchange(evaluated_, book_.updates()) != book_.updates(),
           "a trainer evaluates twice after the same step");
    learn::SupervisedEvaluation result;
    result.metrics = {{"eval/loss", figure()}};
    result.score_mean = figure();
    return result;
  }

  void set_score_scale(double mean, double) override {
    expect(plan_.scores && book_.updates() == plan_.updates, "scores are scaled too early");
    scale_ = static_cast<std::uint64_t>(mean);
  }
  Result<void> save_state(const std::filesystem::path& folder) const override {
    use();
    book_.pass(20ms);
    return book_.save(folder);
  }
  Result<void> save_model(const std::filesystem::path& folder,
                          const std::filesystem::path&) const override {
    use();
    gangs_.entered("model");
    book_.pass(20ms);
    return book_.save_model(folder, "scale " + std::to_string(scale_) + "\n");
  }
  Result<void> load_state(const std::filesystem::path& folder) override {
    TROUPE_TRY(book_.load(folder));
    const std::string name = folder.parent_path().filename().string();
    expect(name.ends_with("_" + padded(book_.updates())), name + " has other steps than its name");
    return {};
  }

 private:
  double figure() const { return static_cast<double>(book_.chain() % 1'000'000); }
  void expect(bool holds, const std::string& what) const { book_.truth().expect(holds, what); }
  void use() const { expect(!half_way_, "a trainer that stands half-way through a step is used"); }

  Gangs& gangs_;
  const WorldPlan& plan_;
  const actors::supervised::TrainingRows rows_;
  const std::unique_ptr<data::PlacedRows> placed_;
  bool half_way_ = false;
  std::optional<std::uint64_t> evaluated_;  // steps at the last evaluation
  std::uint64_t scale_ = 0;
};

}  // namespace

actors::supervised::TrainingRows rows_of(const WorldPlan& plan) {
  const auto training = sequences(0, kTrainingRows);
  auto order = data::BlendOrder::create(training->set_rows(), {}, plan.seed);
  TROUPE_CHECK(order.has_value(), "the order of a world's rows");
  return {data::held_rows(training, *order),
          plan.evaluates ? sequences(50, kHeldOutRows) : nullptr};
}

std::unique_ptr<learn::SupervisedTrainer> fake_supervised_trainer(cluster::sim::VirtualTime& time,
                                                                  Truth& truth,
                                                                  DiskView& disk,
                                                                  Gangs& gangs,
                                                                  const WorldPlan& plan) {
  TrainerFacts facts;
  facts.role = "policy/0";
  facts.groups = plan.groups;
  facts.step = plan.train;
  return std::make_unique<FakeSupervisedTrainer>(Book(time, truth, disk, std::move(facts)), gangs,
                                                 plan);
}

// ---- the lines of a run ------------------------------------------------------------------------

std::string StepLine::text() const {
  return (evaluation ? "eval " : "step ") + std::to_string(done) + " " + std::to_string(figure) +
         " .\n";
}

std::vector<StepLine> read_steps(const std::string& text) {
  std::istringstream in(text);
  std::vector<StepLine> lines;
  for (std::string whole; std::getline(in, whole);) {
    std::istringstream words(whole);
    std::string kind, end;
    StepLine line;
    words >> kind >> line.done >> line.figure >> end;
    line.evaluation = kind == "eval";
    if (end == ".") lines.push_back(line);
  }
  return lines;
}

std::vector<StepLine> due_steps(const WorldPlan& plan) {
  std::vector<StepLine> lines;
  for (std::uint64_t done = 0; done <= plan.updates; ++done) {
    if (done > 0) lines.push_back({false, done});
    const bool edge = done == 0 || done == plan.updates;
    if (plan.evaluates && (edge || done % plan.evaluation_steps == 0))
      lines.push_back({true, done});
  }
  return lines;
}

StepListener::StepListener(async::Timers& timers,
                           Truth& truth,
                           DiskView& disk,
                           const std::vector<StepLine>& kept,
                           std::uint64_t first)
    : FakeListener(timers, truth, disk), done_(first) {
  for (const StepLine& line : kept)
    if (line.evaluation) evaluations_.emplace(line.done, line.figure);
}

// A step that was taken before has the same figure, whoever took it.
core::Result<void> StepListener::add(const StepLine& line) {
  auto& known = line.evaluation ? truth_.evaluation_figures : truth_.step_figures;
  const auto [place, first] = known.emplace(line.done, line.figure);
  truth_.expect(place->second == line.figure, line.text() + "has had another figure before");
  if (!first) truth_.census.count("event", line.evaluation ? "evaluation again" : "step again");
  TROUPE_TRY(disk_.append(kStepsFile, line.text()));
  return disk_.sync(kStepsFile);
}

core::Result<void> StepListener::on_update(const actors::controller::UpdateReport& report) {
  truth_.expect(report.done == done_ + 1, "step " + std::to_string(report.done) +
                                              " is reported after step " + std::to_string(done_));
  TROUPE_TRY(add({false, report.done, static_cast<std::uint64_t>(report.metrics.at(0).second)}));
  done_ = report.done;
  if (progress) progress();
  return {};
}

core::Result<void> StepListener::on_figures(std::uint64_t done,
                                            const actors::controller::Metrics& figures,
                                            const std::string&) {
  truth_.expect(done == done_, "an evaluation of other steps than were taken");
  const auto figure = static_cast<std::uint64_t>(figures.at(0).second);
  TROUPE_TRY(add({true, done, figure}));
  evaluations_[done] = figure;
  truth_.census.count("event", "held-out rows evaluated");
  if (progress) progress();
  return {};
}

core::Result<std::filesystem::path> StepListener::begin_checkpoint(std::uint64_t done) {
  TROUPE_TRY_SET(folder_, FakeListener::begin_checkpoint(done));
  return folder_;
}

async::task<core::Result<std::filesystem::path>> StepListener::commit_checkpoint(
    std::uint64_t done) {
  const auto saved = Learned::of(disk_.disk().read((folder_ / "policy/state").string()));
  truth_.expect(!disk_.works() || (saved && saved->updates.size() == done),
                "the checkpoint of step " + std::to_string(done) + " has other steps");
  return FakeListener::commit_checkpoint(done);
}

bool StepListener::is_best(std::uint64_t done) const {
  const auto now = evaluations_.find(done);
  return now != evaluations_.end() &&
         std::all_of(evaluations_.begin(), now,
                     [&](const auto& before) { return before.second > now->second; });
}

}  // namespace troupe::sim
