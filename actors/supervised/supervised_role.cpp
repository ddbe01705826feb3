#include "actors/supervised/supervised_role.hpp"

#include "actors/protocol/ask.hpp"
#include "actors/protocol/limits.hpp"
#include "actors/protocol/training_rows.hpp"

#include <iterator>

namespace troupe::actors::supervised {
namespace {

core::Failure unasked_rows() {
  return core::fail(core::ErrorCode::kData, "this page of rows was not asked for");
}

// On the device thread. `scale`: keep mean and deviation of the scores.
core::Result<Trained> evaluate(learn::SupervisedTrainer& trainer,
                               const std::vector<TrainingRow>& rows,
                               bool scale) {
  TROUPE_TRY_ASSIGN(result, trainer.evaluate(views_of(rows)));
  if (scale) trainer.set_score_scale(result.score_mean, result.score_std);
  return Trained{trainer.version(), std::move(result.metrics)};
}

}  // namespace

SupervisedRole::SupervisedRole(RoleContext context,
                               std::unique_ptr<learn::SupervisedTrainer> trainer,
                               std::string data_peer,
                               std::filesystem::path tokenizer_from,
                               bool scores,
                               store::Disk& disk)
    : TrainerRole(std::move(context),
                  std::move(trainer),
                  "policy",
                  std::move(tokenizer_from),
                  disk,
                  "waiting for a step"),
      data_peer_(std::move(data_peer)),
      scores_(scores) {}

async::task<core::Result<SupervisedRole::Rows>> SupervisedRole::fetch(std::uint64_t first,
                                                                      std::uint32_t count) {
  auto rows = std::make_shared<std::vector<TrainingRow>>();
  while (rows->size() < count) {
    const auto have = static_cast<std::uint32_t>(rows->size());
    FetchRows fetch{false, first + have, count - have};
    TROUPE_CO_TRY_ASSIGN(page, co_await ask(context_, data_peer_, fetch));
    if (page.rows.empty() || page.rows.size() > count - have) co_return unasked_rows();
    std::move(page.rows.begin(), page.rows.end(), std::back_inserter(*rows));
  }
  co_return rows;
}

async::task<core::Result<void>> SupervisedRole::fetch_held_out() {
  auto rows = std::make_shared<std::vector<TrainingRow>>();
  for (std::uint64_t total = 1; rows->size() < total;) {
    FetchRows fetch{true, rows->size(), 0};
    TROUPE_CO_TRY_ASSIGN(page, co_await ask(context_, data_peer_, fetch));
    total = page.total;
    if (page.rows.empty() || rows->size() + page.rows.size() > total) co_return unasked_rows();
    std::move(page.rows.begin(), page.rows.end(), std::back_inserter(*rows));
  }
  held_out_ = std::move(rows);
  co_return core::Result<void>();
}

async::task<core::Result<Trained>> SupervisedRole::on(TrainUpdate request) {
  const auto turn = co_await turns_.take();
  TROUPE_CO_TRY_ASSIGN(known, answered(request.update));
  if (known) co_return *known;
  TROUPE_CO_TRY(check_whole());
  const core::TimePoint begin = context_.timers->now();
  TROUPE_CO_TRY_ASSIGN(rows, co_await fetch(request.update * request.groups, request.groups));
  begin_update(request.update);
  auto job = [trainer = trainer_, rows]() { return trainer->step(views_of(*rows)); };
  TROUPE_CO_TRY_ASSIGN(step, co_await work_.run("train", std::move(job)));
  const double seconds = std::chrono::duration<double>(context_.timers->now() - begin).count();
  const auto add = [&step](const char* name, double value) {
    step.metrics.emplace_back(name, value);
  };
  add("train/targets", static_cast<double>(step.targets));
  add("train/micro_batches", static_cast<double>(step.micro_batches));
  add("perf/tokens_per_s", static_cast<double>(step.tokens) / std::max(seconds, 1e-9));
  co_return learned(request.update, std::move(step));
}

async::task<core::Result<Trained>> SupervisedRole::on(EvaluateRows request) {
  const auto turn = co_await turns_.take();
  const auto known = evaluations_.find(request.steps);
  if (known != evaluations_.end()) co_return known->second;
  TROUPE_CO_TRY(check_whole());
  if (request.steps != next()) {
    co_return core::fail(core::ErrorCode::kInvalidArgument,
                         "an evaluation was asked for after " + std::to_string(request.steps) +
                             " steps, but the policy has taken " + std::to_string(next()));
  }
  if (!held_out_) TROUPE_CO_TRY(co_await fetch_held_out());
  const bool scale = request.last && scores_;
  auto job = [trainer = trainer_, rows = held_out_, scale]() {
    return evaluate(*trainer, *rows, scale);
  };
  TROUPE_CO_TRY_ASSIGN(result, co_await work_.run("evaluate", std::move(job)));
  evaluations_.insert_or_assign(request.steps, result);
  if (evaluations_.size() > actors::limits::kAnswers_max) evaluations_.erase(evaluations_.begin());
  co_return result;
}

// A new head never asks for what was before the checkpoint before the last.
async::task<core::Result<Ack>> SupervisedRole::on(SaveState request) {
  auto body = TrainerRole::on(std::move(request));
  TROUPE_CO_TRY(co_await std::move(body));
  evaluations_.erase(evaluations_.begin(), evaluations_.lower_bound(first_kept()));
  co_return Ack{};
}

}  // namespace troupe::actors::supervised
