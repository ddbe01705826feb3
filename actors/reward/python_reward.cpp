#include "actors/reward/python_reward.hpp"

#include "actors/protocol/limits.hpp"
#include "actors/reward/busy_calls.hpp"
#include "actors/reward/limits.hpp"
#include "actors/reward/python_messages.hpp"
#include "actors/reward/python_worker_source.hpp"
#include "actors/reward/worker_slots.hpp"
#include "actors/reward/worker_words.hpp"

#include <algorithm>
#include <list>
#include <utility>

namespace troupe::actors::reward {
namespace {

class PythonReward final : public RewardCalls {
 public:
  PythonReward(WorkerPool options, std::unique_ptr<WorkerProcess> first, PythonGreeting greeting)
      : options_(std::move(options)),
        first_(std::move(first)),
        greeting_(std::move(greeting)),
        slots_(slots_of(options_)) {}

  std::string name() const override { return options_.name; }
  RewardReads reads() const override { return greeting_.reads; }
  std::vector<std::string> needs() const override { return greeting_.needs; }

  void begin(const RoleContext& context) override {
    context_ = context;
    slots_.begin(context_, std::move(first_));
  }

  async::task<Answer> score(std::vector<RewardGroup> groups, core::Duration deadline) override {
    const BusyCalls::Guard guard(busy_, context_.activity);
    const std::size_t count = samples_in(groups);
    std::size_t company = limits::kRewardWorkerBatches_max;
    for (;;) {
      TROUPE_CO_TRY_ASSIGN(worker, co_await free_worker(company));
      const std::uint64_t id = ++next_id_;
      const auto batch = worker->give(id, python_request(id, groups),
                                      greeting_.is_async ? company : std::size_t{1});
      const core::Duration least = options_.sample_time * static_cast<std::int64_t>(count);
      const async::Deadline until{batch->sent + std::max(deadline, least)};
      const core::Error late{ErrorCode::kDeadline, "the reward worker did not answer in time"};
      auto reply = co_await async::take_until(*context_.timers, batch->answer, until, late);
      if (!reply && reply.error().code == ErrorCode::kDeadline) {
        worker->overdue(id, greeting_.is_async);
      }
      if (reply) note_time(context_.timers->now() - batch->sent);
      wake();
      if (reply) {
        note_modules(*reply);
        co_return read_python_reply(*reply, count, where());
      }
      if (batch->bystander) continue;
      if (reply.error().code == ErrorCode::kClosed && !batch->alone) {
        company = std::max<std::size_t>(company / 4, 1);
        continue;
      }
      co_return core::fail(reply.error().within(where()));
    }
  }

  std::string take_modules() override { return std::exchange(modules_, {}); }

  wire::Amounts amounts() const override {
    return {{"workers", static_cast<double>(options_.workers)},
            {"together", greeting_.is_async ? 1.0 : 0.0},
            {"starts", static_cast<double>(slots_.starts())},
            {"timed_calls", static_cast<double>(timed_)},
            {"call_s", timed_ == 0 ? 0.0 : timed_s_ / static_cast<double>(timed_)}};
  }

 private:
  WorkerSlots::Options slots_of(const WorkerPool& pool) {
    WorkerSlots::Options slots;
    slots.where = pool.where;
    slots.command = pool.command;
    slots.workers = pool.workers;
    slots.calls_max = pool.calls_max;
    slots.failed_pause = actors::limits::kScorerPause_max;
    slots.greeted = [this](const nlohmann::json& line) -> core::Result<void> {
      TROUPE_TRY_SET(greeting_, read_greeting(line, where()));
      return {};
    };
    slots.changed = [this] { wake(); };
    return slots;
  }

  const std::string& where() const { return options_.where; }

  void note_modules(const nlohmann::json& reply) {
    const auto modules = reply.find("modules");
    if (modules != reply.end() && modules->is_object() && !modules->empty())
      modules_ = modules->dump();
  }

  void note_time(core::Duration took) {
    ++timed_;
    timed_s_ += std::chrono::duration<double>(took).count();
  }

  // The worker with the fewest batches that may have one more; null: none.
  std::shared_ptr<PythonWorker> pick(std::size_t company) const {
    return slots_.least([&](const PythonWorker& worker) {
      return worker.load() < (greeting_.is_async ? std::min(company, worker.company()) : 1);
    });
  }

  // Waits in line for a worker. kPeerLost: none runs, and none can be started. The file loaded
  // before, so that may pass: it is being edited, or memory is short.
  async::task<core::Result<std::shared_ptr<PythonWorker>>> free_worker(std::size_t company) {
    const std::uint64_t failed_before = slots_.failed_starts();
    auto turn = std::make_shared<std::shared_ptr<async::Event>>();
    const async::Listed<std::shared_ptr<async::Event>> listed(line_, turn);
    for (;;) {
      if (!slots_.any_alive() && slots_.failed_starts() > failed_before) {
        co_return core::fail(ErrorCode::kPeerLost, slots_.start_error());
      }
      if (line_.front() == turn) {
        slots_.fill();
        if (auto worker = pick(company)) {
          wake_after(turn);
          co_return worker;
        }
      }
      *turn = std::make_shared<async::Event>();
      co_await async::Event::wait(*turn);
    }
  }

  void wake() {
    for (const auto& turn : line_) {
      if (*turn) (*turn)->fire();
      if (slots_.any_alive()) return;  // the first is enough
    }
  }
  // The next in line may find a worker, too.
  void wake_after(const std::shared_ptr<std::shared_ptr<async::Event>>& turn) {
    const auto next = std::next(std::find(line_.begin(), line_.end(), turn));
    if (next != line_.end() && **next) (**next)->fire();
  }

  const WorkerPool options_;
  std::unique_ptr<WorkerProcess> first_;  // until `begin`
  PythonGreeting greeting_;               // of the newest worker
  RoleContext context_;
  BusyCalls busy_;
  WorkerSlots slots_;
  std::list<std::shared_ptr<std::shared_ptr<async::Event>>> line_;
  std::uint64_t next_id_ = 0, timed_ = 0;
  double timed_s_ = 0;
  std::string modules_;  // not taken yet
};

}  // namespace

core::Result<std::unique_ptr<RewardCalls>> make_python_reward(PythonRewardOptions options) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(options.python, error)) {
    return core::fail(ErrorCode::kConfig,
                      "reward.python: there is no file " + options.python.string(),
                      "name the file of the function");
  }
  WorkerPool pool;
  pool.name = options.python.stem().string();
  pool.where = "reward function " + options.python.string();
  pool.command = {options.interpreter, "-c", kPythonWorkerSource, options.python.string(), "3"};
  pool.workers = options.workers;
  pool.calls_max = options.calls_max;
  return make_worker_reward(std::move(pool));
}

core::Result<std::unique_ptr<RewardCalls>> make_worker_reward(WorkerPool pool) {
  auto process = std::make_unique<WorkerProcess>();
  if (auto started = process->start(pool.command); !started) {
    return core::fail(ErrorCode::kConfig, started.error().message);
  }
  auto line = process->read_line(kWorkerStart);
  if (!line)
    return core::fail(
        refused_start(line.error(), pool.where, pool.command.front(), kInterpreterKey));
  TROUPE_TRY_ASSIGN(greeting, read_greeting(first_words(*line), pool.where));
  return {std::make_unique<PythonReward>(std::move(pool), std::move(process), std::move(greeting))};
}

}  // namespace troupe::actors::reward
