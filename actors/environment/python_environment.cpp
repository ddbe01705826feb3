#include "actors/environment/python_environment.hpp"

#include "actors/environment/environment_messages.hpp"
#include "actors/environment/environment_worker_source.hpp"
#include "actors/environment/limits.hpp"
#include "actors/environment/printed_lines.hpp"
#include "actors/reward/worker_slots.hpp"
#include "actors/reward/worker_words.hpp"
#include "runtime/core/foreign_text.hpp"

#include <map>
#include <set>
#include <utility>

namespace troupe::actors {
namespace {

using core::ErrorCode;
constexpr const char* kEnvironmentInterpreterKey = "env.interpreter";

// What a call of a worker needs, shared by the environment and its episodes.
struct WorkerCalls {
  RoleContext context;
  std::string where;
  std::uint64_t next_id = 0, timed = 0, raised = 0, late = 0;
  double timed_s = 0;
  std::string modules;  // that a worker has told and nobody has taken yet
  std::map<const PythonWorker*, std::size_t> episodes;  // open ones, by worker
  std::function<void()> freed;                          // a worker has room again
};
using SharedCalls = std::shared_ptr<WorkerCalls>;

// Ends a worker that does not cancel a late call in time.
async::task<void> cancel_or_end(SharedCalls calls,
                                std::shared_ptr<PythonWorker> worker,
                                std::uint64_t late) {
  const std::uint64_t id = ++calls->next_id;
  const auto batch = worker->give(id, cancel_request(id, late), 1);
  const auto until = async::Deadline::after(*calls->context.timers, limits::kCancelWait);
  const core::Error error{ErrorCode::kDeadline, ""};
  auto reply = co_await async::take_until(*calls->context.timers, batch->answer, until, error);
  if (!reply && reply.error().code == ErrorCode::kDeadline) {
    worker->end("the environment worker was killed, since one of its calls hung");
  }
}

async::task<core::Result<EnvironmentTurn>> call_worker(SharedCalls calls,
                                                       std::shared_ptr<PythonWorker> worker,
                                                       std::uint64_t id,
                                                       std::string request,
                                                       async::Deadline deadline) {
  if (!worker->alive()) {
    co_return core::fail(ErrorCode::kPeerLost, calls->where + ": " + worker->how_it_ended());
  }
  const auto batch = worker->give(id, std::move(request), limits::kWorkerEpisodes_max);
  const core::Error late{ErrorCode::kDeadline, "it did not answer in time"};
  auto reply = co_await async::take_until(*calls->context.timers, batch->answer, deadline, late);
  if (reply) {
    const core::Duration took = calls->context.timers->now() - batch->sent;
    ++calls->timed;
    calls->timed_s += std::chrono::duration<double>(took).count();
    const auto modules = reply->find("modules");
    if (modules != reply->end() && modules->is_object() && !modules->empty())
      calls->modules = modules->dump();
    auto turn = read_turn_reply(*reply, calls->where);
    if (!turn) ++calls->raised;
    co_return turn;
  }
  if (reply.error().code == ErrorCode::kDeadline) {
    ++calls->late;
    if (worker->alive()) calls->context.scope->spawn("", cancel_or_end(calls, worker, id));
    co_return core::fail(late.within(calls->where));
  }
  co_return core::fail(ErrorCode::kPeerLost, calls->where + ": " + reply.error().message);
}

class PythonEpisode final : public Episode {
 public:
  PythonEpisode(SharedCalls calls, std::shared_ptr<PythonWorker> worker, std::uint64_t number)
      : calls_(std::move(calls)), worker_(std::move(worker)), number_(number) {
    ++calls_->episodes[worker_.get()];
  }
  ~PythonEpisode() override {
    const auto mine = calls_->episodes.find(worker_.get());
    if (--mine->second == 0) calls_->episodes.erase(mine);
    if (worker_->alive()) worker_->tell(close_notice(number_));
    if (calls_->freed) calls_->freed();
  }

  async::task<core::Result<EnvironmentTurn>> open(EpisodeStart start, async::Deadline deadline) {
    const std::uint64_t id = ++calls_->next_id;
    return call_worker(calls_, worker_, id, open_request(id, number_, start), deadline);
  }
  async::task<core::Result<EnvironmentTurn>> step(PolicyTurn turn,
                                                  async::Deadline deadline) override {
    const std::uint64_t id = ++calls_->next_id;
    return call_worker(calls_, worker_, id, step_request(id, number_, turn), deadline);
  }
  async::task<core::Result<EnvironmentTurn>> finish(async::Deadline deadline) override {
    const std::uint64_t id = ++calls_->next_id;
    return call_worker(calls_, worker_, id, finish_request(id, number_), deadline);
  }

 private:
  const SharedCalls calls_;
  const std::shared_ptr<PythonWorker> worker_;
  const std::uint64_t number_;
};

// A worker's first line.
core::Result<void> read_ready(const nlohmann::json& line, const std::string& where) {
  const auto ready = line.find("ready");
  if (ready != line.end() && ready->is_boolean() && ready->get<bool>()) return {};
  return refused_file(line, where, kEnvironmentInterpreterKey);
}

class PythonEnvironment final : public Environment {
 public:
  PythonEnvironment(PythonEnvironmentOptions options,
                    std::vector<std::string> command,
                    std::unique_ptr<WorkerProcess> first)
      : options_(std::move(options)),
        first_(std::move(first)),
        printed_(options_.file.filename().string(), options_.say),
        slots_(slots_of(std::move(command))) {
    calls_->where = "environment " + options_.file.string();
    calls_->freed = [this] { wake(); };
  }
  ~PythonEnvironment() override { calls_->freed = nullptr; }

  std::string name() const override { return "the environment " + options_.file.string(); }

  void begin(const RoleContext& context) override {
    calls_->context = context;
    slots_.begin(context, std::move(first_));
  }

  async::task<core::Result<OpenedEpisode>> open(EpisodeStart start,
                                                async::Deadline deadline) override {
    TROUPE_CO_TRY_ASSIGN(worker, co_await free_worker(deadline));
    auto episode = std::make_unique<PythonEpisode>(calls_, std::move(worker), ++episodes_);
    TROUPE_CO_TRY_ASSIGN(opening, co_await episode->open(std::move(start), deadline));
    OpenedEpisode opened;
    opened.opening = std::move(opening);
    opened.episode = std::move(episode);
    co_return opened;
  }

  std::string take_modules() override { return std::exchange(calls_->modules, {}); }

  wire::Amounts amounts() const override {
    std::size_t open = 0;
    for (const auto& [worker, count] : calls_->episodes)
      open += count;
    return {{"workers", static_cast<double>(options_.workers)},
            {"episodes", static_cast<double>(open)},
            {"starts", static_cast<double>(slots_.starts())},
            {"raised", static_cast<double>(calls_->raised)},
            {"late", static_cast<double>(calls_->late)},
            {"call_s",
             calls_->timed == 0 ? 0.0 : calls_->timed_s / static_cast<double>(calls_->timed)}};
  }

 private:
  WorkerSlots::Options slots_of(std::vector<std::string> command) {
    WorkerSlots::Options slots;
    slots.name = "environment worker";
    slots.where = "environment " + options_.file.string();
    slots.command = std::move(command);
    slots.workers = options_.workers;
    slots.pause_min = limits::kEnvironmentPause_min;
    slots.pause_max = limits::kEnvironmentPause_max;
    slots.prints = WorkerProcess::Prints::kTaken;
    slots.greeted = [where = slots.where](const nlohmann::json& line) {
      return read_ready(line, where);
    };
    slots.changed = [this] { wake(); };
    slots.lost = [this](const std::string& how) {
      if (options_.say) options_.say(calls_->where + ": " + how + "; it is started again");
    };
    slots.printed = [this](std::string line) { printed_(line, calls_->context.timers->now()); };
    return slots;
  }

  std::size_t episodes_of(const PythonWorker& worker) const {
    const auto found = calls_->episodes.find(&worker);
    return found == calls_->episodes.end() ? 0 : found->second;
  }

  // The worker with the fewest episodes that has room for one more.
  async::task<core::Result<std::shared_ptr<PythonWorker>>> free_worker(async::Deadline deadline) {
    const std::uint64_t failed_before = slots_.failed_starts();
    for (;;) {
      slots_.fill();
      auto worker = slots_.least(
          [&](const PythonWorker& one) { return episodes_of(one) < limits::kWorkerEpisodes_max; },
          [&](const PythonWorker& one) { return episodes_of(one); });
      if (worker) co_return worker;
      if (slots_.failed_starts() > failed_before) {
        co_return core::fail(ErrorCode::kPeerLost, slots_.start_error());
      }
      if (!notifier_) notifier_.emplace(*calls_->context.timers);
      const bool woken = co_await notifier_->wait(deadline);
      if (!woken) {
        co_return core::fail(ErrorCode::kDeadline,
                             calls_->where + ": no worker had room for an episode in time");
      }
    }
  }
  void wake() {
    if (notifier_) notifier_->notify_all();
  }

  const PythonEnvironmentOptions options_;
  const SharedCalls calls_ = std::make_shared<WorkerCalls>();
  std::unique_ptr<WorkerProcess> first_;  // until `begin`
  PrintedLines printed_;
  WorkerSlots slots_;
  std::optional<async::Notifier> notifier_;
  std::uint64_t episodes_ = 0;
};

}  // namespace

core::Result<std::unique_ptr<Environment>> make_python_environment(
    PythonEnvironmentOptions options) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(options.file, error)) {
    return core::fail(ErrorCode::kConfig, "env.python: there is no file " + options.file.string());
  }
  const std::vector<std::string> command = {
      options.interpreter,   "-c", kEnvironmentWorkerSource,
      options.file.string(), "3",  std::to_string(limits::kObservation_bytes_max)};
  const std::string where = "environment " + options.file.string();
  auto process = std::make_unique<WorkerProcess>("environment worker");
  if (auto started = process->start(command, WorkerProcess::Prints::kTaken); !started) {
    return core::fail(ErrorCode::kConfig, started.error().message);
  }
  auto line = process->read_line(kWorkerStart);
  if (!line) {
    return core::fail(
        refused_start(line.error(), where, options.interpreter, kEnvironmentInterpreterKey));
  }
  TROUPE_TRY(read_ready(first_words(*line), where));
  return {std::make_unique<PythonEnvironment>(std::move(options), command, std::move(process))};
}

}  // namespace troupe::actors
