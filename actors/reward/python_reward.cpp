#include "actors/reward/python_reward.hpp"

#include "actors/reward/busy_calls.hpp"
#include "actors/reward/python_messages.hpp"
#include "actors/reward/python_worker.hpp"
#include "actors/reward/python_worker_source.hpp"
#include "actors/reward/worker_words.hpp"

#include <algorithm>
#include <list>

namespace troupe::actors {
namespace {

using core::ErrorCode;

class PythonReward final : public RewardCalls {
 public:
  PythonReward(WorkerPool options, std::unique_ptr<WorkerProcess> first, PythonGreeting greeting)
      : options_(std::move(options)),
        first_(std::move(first)),
        greeting_(std::move(greeting)),
        slots_(options_.workers) {}

  std::string name() const override { return options_.name; }
  RewardReads reads() const override { return greeting_.reads; }

  void begin(const RoleContext& context) override {
    context_ = context;
    adopt(slots_.front(), std::make_shared<PythonWorker>(context_, std::move(first_), true));
    fill();
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
      if (reply) co_return read_python_reply(*reply, count, where());
      if (batch->bystander) continue;
      if (reply.error().code == ErrorCode::kClosed && !batch->alone) {
        company = std::max<std::size_t>(company / 4, 1);
        continue;
      }
      co_return core::fail(reply.error().within(where()));
    }
  }

  wire::Amounts amounts() const override {
    return {{"workers", static_cast<double>(options_.workers)},
            {"together", greeting_.is_async ? 1.0 : 0.0},
            {"starts", static_cast<double>(starts_)},
            {"timed_calls", static_cast<double>(timed_)},
            {"call_s", timed_ == 0 ? 0.0 : timed_s_ / static_cast<double>(timed_)}};
  }

 private:
  struct Slot {
    std::shared_ptr<PythonWorker> worker;
    bool starting = false;
    core::TimePoint retry{};  // after a start that failed
  };

  const std::string& where() const { return options_.where; }

  void note_time(core::Duration took) {
    ++timed_;
    timed_s_ += std::chrono::duration<double>(took).count();
  }

  void adopt(Slot& slot, std::shared_ptr<PythonWorker> worker) {
    ++starts_;
    slot.worker = std::move(worker);
    slot.worker->run([this] { wake(); });
  }

  // Starts workers in the empty slots, and in those of workers that have had their calls.
  void fill() {
    const core::TimePoint now = context_.timers->now();
    for (Slot& slot : slots_) {
      if (slot.starting) continue;
      const bool done = slot.worker && slot.worker->given() >= options_.calls_max;
      if (done && slot.worker->alive() && slot.worker->load() == 0) slot.worker->end();
      if (slot.worker && slot.worker->alive()) continue;
      if (now < slot.retry && any_alive()) continue;
      slot.starting = true;
      context_.scope->spawn("start a reward worker", start(&slot));
    }
  }

  bool any_alive() const {
    return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) {
      return slot.starting || (slot.worker && slot.worker->alive());
    });
  }

  async::task<void> start(Slot* slot) {
    auto job =
        [command =
             options_.command]() -> core::Result<std::shared_ptr<std::unique_ptr<WorkerProcess>>> {
      auto process = std::make_unique<WorkerProcess>();
      TROUPE_TRY(process->start(command));
      return std::make_shared<std::unique_ptr<WorkerProcess>>(std::move(process));
    };
    auto process = co_await context_.device->run(std::move(job), async::DeviceQueue::kWait);
    std::optional<core::Error> failed;
    if (process) {
      auto worker = std::make_shared<PythonWorker>(context_, std::move(**process), false);
      worker->run([this] { wake(); });
      const auto until = async::Deadline::after(*context_.timers, kWorkerStart);
      const core::Error late{ErrorCode::kDeadline, "it did not load within 60 s"};
      auto line = co_await async::take_until(*context_.timers, worker->greeting(), until, late);
      core::Result<PythonGreeting> greeting = core::fail(ErrorCode::kInternal, "");
      if (line) {
        greeting = read_greeting(*line, where());
      } else {
        greeting = core::fail(line.error().within(where()));
      }
      if (greeting) {
        ++starts_;
        greeting_ = std::move(*greeting);
        slot->worker = std::move(worker);
      } else {
        failed = greeting.error();
        if (worker->alive()) worker->end();
      }
    } else {
      failed = process.error();
    }
    slot->starting = false;
    if (failed) {
      ++failed_starts_;
      start_error_ = failed->message;
      slot->retry = context_.timers->now() + limits::kScorerPause_max;
    }
    wake();
  }

  // The worker with the fewest batches that may have one more; null: none.
  std::shared_ptr<PythonWorker> pick(std::size_t company) const {
    std::shared_ptr<PythonWorker> best;
    for (const Slot& slot : slots_) {
      const auto& worker = slot.worker;
      if (!worker || !worker->alive() || worker->given() >= options_.calls_max) continue;
      const std::size_t room = greeting_.is_async ? std::min(company, worker->company()) : 1;
      if (worker->load() >= room) continue;
      if (!best || worker->load() < best->load()) best = worker;
    }
    return best;
  }

  // Waits in line for a worker. kPeerLost: none runs, and none can be started. The file loaded
  // before, so that may pass: it is being edited, or memory is short.
  async::task<core::Result<std::shared_ptr<PythonWorker>>> free_worker(std::size_t company) {
    const std::uint64_t failed_before = failed_starts_;
    auto turn = std::make_shared<std::shared_ptr<async::Event>>();
    const async::Listed<std::shared_ptr<async::Event>> listed(line_, turn);
    for (;;) {
      if (!any_alive() && failed_starts_ > failed_before) {
        co_return core::fail(ErrorCode::kPeerLost, start_error_);
      }
      if (line_.front() == turn) {
        fill();
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
      if (any_alive()) return;  // the first is enough
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
  std::vector<Slot> slots_;
  std::list<std::shared_ptr<std::shared_ptr<async::Event>>> line_;
  std::uint64_t next_id_ = 0, starts_ = 0, failed_starts_ = 0, timed_ = 0;
  double timed_s_ = 0;
  std::string start_error_;
};

}  // namespace

core::Result<std::unique_ptr<RewardCalls>> make_python_reward(PythonRewardOptions options) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(options.file, error)) {
    return core::fail(ErrorCode::kConfig,
                      "reward.python: there is no file " + options.file.string());
  }
  WorkerPool pool;
  pool.name = options.file.stem().string();
  pool.where = "reward function " + options.file.string();
  pool.command = {"python3", "-c", kPythonWorkerSource, options.file.string(), "3"};
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
  if (!line) return core::fail(ErrorCode::kConfig, line.error().within(pool.where).message);
  TROUPE_TRY_ASSIGN(greeting, read_greeting(first_words(*line), pool.where));
  return {std::make_unique<PythonReward>(std::move(pool), std::move(process), std::move(greeting))};
}

}  // namespace troupe::actors
