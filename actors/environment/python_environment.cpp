#include "actors/environment/python_environment.hpp"

#include "actors/environment/environment_messages.hpp"
#include "actors/environment/environment_worker_source.hpp"
#include "actors/environment/episode_room.hpp"
#include "actors/environment/limits.hpp"
#include "actors/environment/printed_lines.hpp"
#include "actors/reward/worker_slots.hpp"
#include "actors/reward/worker_words.hpp"
#include "runtime/core/foreign_text.hpp"

#include <map>
#include <set>
#include <utility>

namespace troupe::actors::environment {
namespace {

constexpr const char* kEnvironmentInterpreterKey = "env.interpreter";

// What the calls of workers need, shared by the environment and its episodes.
struct WorkerCalls {
  RoleContext context;
  std::string where;
  std::uint64_t next_id = 0, timed = 0, raised = 0, late = 0;
  double timed_s = 0;
  std::string modules;  // reported by a worker and not taken yet
  std::map<const reward::PythonWorker*, EpisodeRoom> episodes;  // open ones, by worker
  std::set<std::uint64_t> lonely;                               // rows of which one hung
  std::function<void()> freed;                                  // a worker has room again
};
using SharedCalls = std::shared_ptr<WorkerCalls>;

// One call of a worker, for one episode. A worker that hangs, or dies, takes along what others have
// asked of it: how the call ended says whether it can be the cause.
class WorkerCall {
 public:
  WorkerCall(SharedCalls calls, std::shared_ptr<reward::PythonWorker> worker, std::uint64_t row)
      : calls_(std::move(calls)), worker_(std::move(worker)), row_(row) {}

  // `limit`: for the answer, from when the worker begins with it; none: as long as it takes.
  static async::task<core::Result<EnvironmentTurn>> run(WorkerCall self,
                                                        std::uint64_t id,
                                                        std::string request,
                                                        async::Deadline deadline) {
    if (!self.worker_->alive()) co_return self.lost(false);
    const bool bounded = !deadline.is_none();
    const core::Duration limit = deadline.remaining(*self.timers());
    const auto batch = self.worker_->give(id, std::move(request), limits::kWorkerEpisodes_max);
    if (bounded) co_await begin(&self, batch, limit);
    const async::Deadline until =
        bounded && batch->begun ? async::Deadline{*batch->begun + limit} : async::Deadline::none();
    const core::Error late{ErrorCode::kDeadline, "it did not answer in time"};
    auto reply = co_await async::take_until(*self.timers(), batch->answer, until, late);
    if (reply) co_return self.turn_of(*reply, batch->sent);
    if (reply.error().code != ErrorCode::kDeadline) co_return self.lost(batch->begun.has_value());
    ++self.calls_->late;
    const bool cancelled = co_await cancel(&self, id);
    if (cancelled || self.worker_->begun_at_end() == 1) {
      if (!cancelled) self.remember();
      co_return core::fail(late.within(self.calls_->where));
    }
    co_return self.lost(true);
  }

 private:
  async::Timers* timers() const { return calls_->context.timers; }

  core::Result<EnvironmentTurn> turn_of(const nlohmann::json& reply, core::TimePoint sent) {
    ++calls_->timed;
    calls_->timed_s += std::chrono::duration<double>(timers()->now() - sent).count();
    const auto modules = reply.find("modules");
    if (modules != reply.end() && modules->is_object() && !modules->empty())
      calls_->modules = modules->dump();
    auto turn = read_turn_reply(reply, calls_->where);
    if (!turn) ++calls_->raised;
    return turn;
  }

  // Waits until the worker begins with the batch, or it is over. Plain methods wait for those
  // before them, each of which has its own limit; a worker that is silent for longer hangs.
  static async::task<void> begin(WorkerCall* self,
                                 std::shared_ptr<reward::PythonWorker::Batch> batch,
                                 core::Duration limit) {
    while (!batch->begun && !batch->over) {
      const core::TimePoint heard = std::max(batch->sent, self->worker_->heard());
      const async::Deadline until{heard + limit + 2 * limits::kCancelWait};
      const bool news = co_await batch->news->wait(until);
      if (!news && self->worker_->heard() <= heard) self->worker_->end(kHung);
    }
  }

  // True when the worker has cancelled the late call; ends the worker when it does not in time.
  static async::task<bool> cancel(WorkerCall* self, std::uint64_t late) {
    if (!self->worker_->alive()) co_return false;
    const std::uint64_t id = ++self->calls_->next_id;
    const auto batch = self->worker_->give(id, cancel_request(id, late), 1);
    const auto until = async::Deadline::after(*self->timers(), limits::kCancelWait);
    const core::Error error{ErrorCode::kDeadline, ""};
    auto reply = co_await async::take_until(*self->timers(), batch->answer, until, error);
    if (reply) self->worker_->forget(late);
    if (!reply) self->worker_->end(kHung);
    co_return reply.has_value();
  }

  // The worker has ended. Of the calls that it had begun one is the cause; if it had begun none,
  // any of its episodes may be.
  core::Result<EnvironmentTurn> lost(bool begun) {
    const std::size_t suspects = worker_->begun_at_end();
    const bool innocent = !begun && suspects > 0;
    return core::fail(innocent ? ErrorCode::kInterrupted : ErrorCode::kClosed,
                      calls_->where + ": " + worker_->how_it_ended());
  }

  // The row's other episodes are likely to do the same: they run alone from now on.
  void remember() {
    calls_->lonely.insert(row_);
    if (calls_->lonely.size() > limits::kLonelyRows_max)
      calls_->lonely.erase(calls_->lonely.begin());
  }

  static constexpr const char* kHung =
      "the environment worker was killed, since one of its calls hung";
  SharedCalls calls_;
  std::shared_ptr<reward::PythonWorker> worker_;
  std::uint64_t row_;
};

class PythonEpisode final : public Episode {
 public:
  PythonEpisode(SharedCalls calls,
                std::shared_ptr<reward::PythonWorker> worker,
                std::uint64_t number,
                std::uint64_t row,
                std::size_t company)
      : calls_(std::move(calls)),
        worker_(std::move(worker)),
        number_(number),
        row_(row),
        company_(company) {
    calls_->episodes[worker_.get()].enter(company_);
  }
  ~PythonEpisode() override {
    const auto mine = calls_->episodes.find(worker_.get());
    mine->second.leave(company_);
    if (mine->second.size() == 0) calls_->episodes.erase(mine);
    if (worker_->alive()) worker_->tell(close_notice(number_));
    if (calls_->freed) calls_->freed();
  }

  async::task<core::Result<EnvironmentTurn>> open(EpisodeStart start, async::Deadline deadline) {
    const std::uint64_t id = ++calls_->next_id;
    return call(id, open_request(id, number_, start), deadline);
  }
  async::task<core::Result<EnvironmentTurn>> step(PolicyTurn turn,
                                                  async::Deadline deadline) override {
    const std::uint64_t id = ++calls_->next_id;
    return call(id, step_request(id, number_, turn), deadline);
  }
  async::task<core::Result<EnvironmentTurn>> finish(async::Deadline deadline) override {
    const std::uint64_t id = ++calls_->next_id;
    return call(id, finish_request(id, number_), deadline);
  }

 private:
  async::task<core::Result<EnvironmentTurn>> call(std::uint64_t id,
                                                  std::string request,
                                                  async::Deadline deadline) {
    return WorkerCall::run(WorkerCall(calls_, worker_, row_), id, std::move(request), deadline);
  }

  const SharedCalls calls_;
  const std::shared_ptr<reward::PythonWorker> worker_;
  const std::uint64_t number_, row_;
  const std::size_t company_;
};

// A worker's first line.
core::Result<void> read_ready(const nlohmann::json& line, const std::string& where) {
  const auto ready = line.find("ready");
  if (ready != line.end() && ready->is_boolean() && ready->get<bool>()) return {};
  return reward::refused_file(line, where, kEnvironmentInterpreterKey);
}

class PythonEnvironment final : public Environment {
 public:
  PythonEnvironment(PythonEnvironmentOptions options,
                    std::vector<std::string> command,
                    std::unique_ptr<reward::WorkerProcess> first)
      : options_(std::move(options)),
        first_(std::move(first)),
        printed_(options_.python.filename().string(), options_.say),
        slots_(slots_of(std::move(command))) {
    calls_->where = "environment " + options_.python.string();
    calls_->freed = [this] { wake(); };
  }
  ~PythonEnvironment() override { calls_->freed = nullptr; }

  std::string name() const override { return "the environment " + options_.python.string(); }

  void begin(const RoleContext& context) override {
    calls_->context = context;
    slots_.begin(context, std::move(first_));
  }

  async::task<core::Result<OpenedEpisode>> open(EpisodeStart start,
                                                async::Deadline deadline) override {
    const core::Duration limit = deadline.remaining(*calls_->context.timers);
    const std::uint64_t row = start.row;
    const std::size_t company = calls_->lonely.contains(row) ? 1 : company_of(start);
    TROUPE_CO_TRY_ASSIGN(worker, co_await free_worker(company));
    const async::Deadline until =
        deadline.is_none() ? deadline : async::Deadline::after(*calls_->context.timers, limit);
    auto episode =
        std::make_unique<PythonEpisode>(calls_, std::move(worker), ++episodes_, row, company);
    TROUPE_CO_TRY_ASSIGN(opening, co_await episode->open(std::move(start), until));
    OpenedEpisode opened;
    opened.opening = std::move(opening);
    opened.episode = std::move(episode);
    co_return opened;
  }

  std::string take_modules() override { return std::exchange(calls_->modules, {}); }

  wire::Amounts amounts() const override {
    std::size_t open = 0;
    for (const auto& [worker, room] : calls_->episodes)
      open += room.size();
    return {{"workers", static_cast<double>(options_.workers)},
            {"episodes", static_cast<double>(open)},
            {"starts", static_cast<double>(slots_.starts())},
            {"restart_pause_s", slots_.longest_pause_s()},
            {"raised", static_cast<double>(calls_->raised)},
            {"late", static_cast<double>(calls_->late)},
            {"call_s",
             calls_->timed == 0 ? 0.0 : calls_->timed_s / static_cast<double>(calls_->timed)}};
  }

 private:
  reward::WorkerSlots::Options slots_of(std::vector<std::string> command) {
    reward::WorkerSlots::Options slots;
    slots.name = "environment worker";
    slots.where = "environment " + options_.python.string();
    slots.command = std::move(command);
    slots.workers = options_.workers;
    slots.pause_min = limits::kEnvironmentPause_min;
    slots.pause_max = limits::kEnvironmentPause_max;
    slots.pause_forget = limits::kEnvironmentPause_forget;
    slots.prints = reward::WorkerProcess::Prints::kTaken;
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

  EpisodeRoom room_of(const reward::PythonWorker& worker) const {
    const auto found = calls_->episodes.find(&worker);
    return found == calls_->episodes.end() ? EpisodeRoom() : found->second;
  }

  // The worker with the fewest episodes that has room for one more.
  async::task<core::Result<std::shared_ptr<reward::PythonWorker>>> free_worker(
      std::size_t company) {
    const std::uint64_t failed_before = slots_.failed_starts();
    for (;;) {
      slots_.fill();
      auto worker = slots_.least(
          [&](const reward::PythonWorker& one) { return room_of(one).has_room(company); },
          [&](const reward::PythonWorker& one) { return room_of(one).size(); });
      if (worker) co_return worker;
      if (slots_.failed_starts() > failed_before) {
        co_return core::fail(ErrorCode::kPeerLost, slots_.start_error());
      }
      if (!notifier_) notifier_.emplace(*calls_->context.timers);
      const bool woken = co_await notifier_->wait(async::Deadline::none());
      static_cast<void>(woken);
    }
  }
  void wake() {
    if (notifier_) notifier_->notify_all();
  }

  const PythonEnvironmentOptions options_;
  const SharedCalls calls_ = std::make_shared<WorkerCalls>();
  std::unique_ptr<reward::WorkerProcess> first_;  // until `begin`
  PrintedLines printed_;
  reward::WorkerSlots slots_;
  std::optional<async::Notifier> notifier_;
  std::uint64_t episodes_ = 0;
};

}  // namespace

core::Result<std::unique_ptr<Environment>> make_python_environment(
    PythonEnvironmentOptions options) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(options.python, error)) {
    return core::fail(ErrorCode::kConfig,
                      "env.python: there is no file " + options.python.string());
  }
  const std::vector<std::string> command = {
      options.interpreter,     "-c", kEnvironmentWorkerSource,
      options.python.string(), "3",  std::to_string(limits::kObservation_bytes_max)};
  const std::string where = "environment " + options.python.string();
  auto process = std::make_unique<reward::WorkerProcess>("environment worker");
  if (auto started = process->start(command, reward::WorkerProcess::Prints::kTaken); !started) {
    return core::fail(ErrorCode::kConfig, started.error().message);
  }
  auto line = process->read_line(reward::kWorkerStart);
  if (!line) {
    return core::fail(reward::refused_start(line.error(), where, options.interpreter,
                                            kEnvironmentInterpreterKey));
  }
  TROUPE_TRY(read_ready(reward::first_words(*line), where));
  return {std::make_unique<PythonEnvironment>(std::move(options), command, std::move(process))};
}

}  // namespace troupe::actors::environment
