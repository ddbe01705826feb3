#include "actors/reward/worker_slots.hpp"

#include "actors/reward/worker_words.hpp"

#include <algorithm>

namespace troupe::actors::reward {

void WorkerSlots::begin(const RoleContext& context, std::unique_ptr<WorkerProcess> first) {
  context_ = context;
  ++starts_;
  auto worker = std::make_shared<PythonWorker>(context_, std::move(first), true);
  run(&slots_.front(), worker);
  slots_.front().worker = std::move(worker);
  fill();
}

void WorkerSlots::fill() {
  const core::TimePoint now = context_.timers->now();
  for (Slot& slot : slots_) {
    if (slot.starting) continue;
    const bool done =
        slot.worker && options_.calls_max > 0 && slot.worker->given() >= options_.calls_max;
    if (done && slot.worker->alive() && slot.worker->load() == 0) slot.worker->end();
    if (slot.worker && slot.worker->alive()) continue;
    const bool pauses = options_.pause_min > core::Duration::zero();
    if (now < slot.retry && !pauses && any_alive()) continue;
    slot.starting = true;
    context_.scope->spawn("start a " + options_.name, start(&slot));
  }
}

bool WorkerSlots::any_alive() const {
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) {
    return slot.starting || (slot.worker && slot.worker->alive());
  });
}

double WorkerSlots::longest_pause_s() const {
  core::Duration longest{};
  for (const Slot& slot : slots_)
    longest = std::max(longest, slot.pause);
  return std::chrono::duration<double>(longest).count();
}

void WorkerSlots::run(Slot* slot, const std::shared_ptr<PythonWorker>& worker) {
  std::function<void(std::string)> printed = options_.printed;
  const PythonWorker* const it = worker.get();
  worker->run([this, slot, it] { ended(slot, *it); }, std::move(printed));
}

void WorkerSlots::ended(Slot* slot, const PythonWorker& worker) {
  if (slot->worker.get() == &worker) {
    const core::TimePoint now = context_.timers->now();
    const bool again = !worker.answered() && now - slot->lost < options_.pause_forget;
    slot->pause = again ? std::min(2 * slot->pause, options_.pause_max) : options_.pause_min;
    slot->lost = now;
    slot->retry = now + slot->pause;
    if (options_.lost) options_.lost(worker.how_it_ended());
  }
  if (options_.changed) options_.changed();
}

async::task<core::Result<std::shared_ptr<PythonWorker>>> WorkerSlots::started(Slot* slot) {
  auto job = [command = options_.command, name = options_.name, prints = options_.prints]()
      -> core::Result<std::shared_ptr<std::unique_ptr<WorkerProcess>>> {
    auto process = std::make_unique<WorkerProcess>(name);
    TROUPE_TRY(process->start(command, prints));
    return std::make_shared<std::unique_ptr<WorkerProcess>>(std::move(process));
  };
  auto process = co_await context_.device->run(std::move(job), async::DeviceQueue::kWait);
  if (!process) co_return process.failure();
  auto worker = std::make_shared<PythonWorker>(context_, std::move(**process), false);
  run(slot, worker);
  const auto until = async::Deadline::after(*context_.timers, kWorkerStart);
  const core::Error late{ErrorCode::kDeadline, "it did not load within 60 s"};
  auto line = co_await async::take_until(*context_.timers, worker->greeting(), until, late);
  auto greeted = line ? options_.greeted(*line)
                      : core::Result<void>(core::fail(line.error().within(options_.where)));
  if (greeted) co_return worker;
  worker->end();
  co_return greeted.failure();
}

async::task<void> WorkerSlots::start(Slot* slot) {
  if (options_.pause_min > core::Duration::zero() && context_.timers->now() < slot->retry) {
    co_await async::sleep_until(*context_.timers, slot->retry);
  }
  auto worker = co_await started(slot);
  slot->starting = false;
  if (worker) {
    ++starts_;
    slot->worker = std::move(*worker);
  } else {
    ++failed_starts_;
    start_error_ = worker.error().message;
    slot->pause = std::min(std::max(2 * slot->pause, options_.pause_min), options_.pause_max);
    slot->retry = context_.timers->now() + std::max(slot->pause, options_.failed_pause);
  }
  if (options_.changed) options_.changed();
}

std::shared_ptr<PythonWorker> WorkerSlots::least(
    const std::function<bool(const PythonWorker&)>& has_room,
    const std::function<std::size_t(const PythonWorker&)>& load) const {
  std::shared_ptr<PythonWorker> best;
  std::size_t least = 0;
  for (const Slot& slot : slots_) {
    const auto& worker = slot.worker;
    if (!worker || !worker->alive() || !has_room(*worker)) continue;
    if (options_.calls_max > 0 && worker->given() >= options_.calls_max) continue;
    const std::size_t now = load ? load(*worker) : worker->load();
    if (!best || now < least) {
      best = worker;
      least = now;
    }
  }
  return best;
}

}  // namespace troupe::actors::reward
