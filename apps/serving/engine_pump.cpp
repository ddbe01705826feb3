// The pump is one coroutine on its own strand. Again and again it collects the submitted work, runs
// a turn of the engine driver on the engine's thread, and passes the turn's news to the listeners.
#include "apps/serving/engine_pump.hpp"

#include "kernels/ops.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/async/notifier.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/engine/limits.hpp"
#include "runtime/net/strand_scope.hpp"

#include <unordered_map>
#include <utility>

namespace troupe::serving {

using engine::GroupNews;

namespace {

// Removes the engine's group number from a message: it means nothing to a client.
core::Error without_group(core::Error error, core::GroupId id) {
  const std::string own = "group " + std::to_string(id.value);
  for (const char* end : {": ", ", "}) {
    const auto at = error.message.find(own + end);
    if (at != std::string::npos) error.message.erase(at, own.size() + 2);
  }
  return error;
}

struct ControlCall {
  EnginePump::Call call;
  std::shared_ptr<async::Oneshot<core::Result<void>>> done;
  async::Executor executor;
};

}  // namespace

struct EnginePump::Impl {
  Impl(async::IoThreads& io, std::unique_ptr<engine::EngineDriver> made)
      : driver(std::move(made)), strand_scope(io), changed(timers) {
    count();
  }

  struct Client {
    async::Executor executor;
    std::shared_ptr<const Listener> listener;
    std::int32_t left = 0;  // samples that have not finished
    std::uint32_t owner = 0;
  };
  struct Work {
    std::vector<ControlCall> calls;
    engine::EngineWork engine;
  };
  struct Turn {
    std::vector<GroupNews> news;
    std::vector<core::Result<void>> calls;  // the outcome of each of Work::calls
    std::optional<core::Version> swapped;
    std::optional<core::Error> intake_error;
    bool busy = false;  // the engine has more to compute
  };

  static async::task<void> loop(Impl* self);
  core::Result<Turn> turn(Work& work);
  void count();
  Turn broken(const core::Error& error) const;
  void deliver(Work& work, Turn turn);
  static void tell(const Client& client, GroupNews news);
  // As RequestPlaces: no owner has more groups than there is room for others.
  bool has_room(std::uint32_t owner) {
    return groups[owner] + clients.size() < engine::limits::kEngineQueue_groups_max;
  }
  bool forget(std::uint64_t group) {
    const auto found = clients.find(group);
    if (found == clients.end()) return false;
    const auto count = groups.find(found->second.owner);
    if (count != groups.end() && --count->second == 0) groups.erase(count);
    clients.erase(found);
    return true;
  }
  bool waits() const {
    return busy || intake || !work.engine.aborts.empty() || !work.engine.submits.empty() ||
           !work.calls.empty();
  }

  const std::unique_ptr<engine::EngineDriver> driver;  // used on the engine's thread only

  async::SteadyTimers timers;
  net::StrandScope strand_scope;
  async::Notifier changed;
  async::DeviceThread thread{"engine", &kernels::flush_denormals};

  // Used on the strand only.
  Work work;  // for the next turn
  std::unordered_map<std::uint64_t, Client> clients;
  std::unordered_map<std::uint32_t, std::size_t> groups;  // of each owner, in `clients`
  std::shared_ptr<weights::WeightIntake> intake;
  engine::KvAction kv = engine::KvAction::kRecompute;
  Swapped swapped;
  bool busy = false;

  mutable std::mutex mutex;  // guards `counters`
  PumpCounters counters;
  bool stopped = false;
};

core::Result<EnginePump::Impl::Turn> EnginePump::Impl::turn(Work& given) {
  Turn turn;
  for (const ControlCall& control : given.calls) {
    if (driver->engine() == nullptr) {
      turn.calls.push_back(core::fail(core::ErrorCode::kClosed, "there are no weights yet"));
      continue;
    }
    auto outcome = control.call(*driver);
    turn.calls.push_back(outcome ? core::Result<void>() : outcome.failure());
    if (!outcome) continue;
    for (GroupNews& news : *outcome)
      turn.news.push_back(std::move(news));
  }
  engine::EngineTurn taken = driver->turn(std::move(given.engine));
  for (GroupNews& news : taken.news)
    turn.news.push_back(std::move(news));
  turn.swapped = taken.swapped;
  turn.intake_error = std::move(taken.intake_error);
  turn.busy = driver->computes();
  count();
  return turn;
}

void EnginePump::Impl::count() {
  const engine::Engine* const engine = driver->engine();
  if (engine == nullptr) return;
  const std::lock_guard lock(mutex);
  counters.engine = engine->counters();
  counters.state = engine->state();
  const bool awake = counters.state.weights == engine::WeightsState::kAwake;
  if (awake) counters.version = engine->weights().version();
  counters.ready = true;
}

// The result of a turn that threw an exception. The engine's state is unknown, so every group
// fails.
EnginePump::Impl::Turn EnginePump::Impl::broken(const core::Error& error) const {
  Turn turn;
  for (const auto& [id, client] : clients) {
    GroupNews& news = turn.news.emplace_back();
    news.group = {id};
    news.error = error;
  }
  if (intake) turn.intake_error = error;
  return turn;
}

void EnginePump::Impl::tell(const Client& client, GroupNews news) {
  auto listener = client.listener;
  auto shared = std::make_shared<GroupNews>(std::move(news));
  async::post(client.executor, [listener, shared] { (*listener)(std::move(*shared)); });
}

void EnginePump::Impl::deliver(Work& given, Turn turn) {
  busy = turn.busy;
  for (std::size_t i = 0; i < given.calls.size(); ++i) {
    const core::Result<void> outcome =
        i < turn.calls.size() ? turn.calls[i]
                              : core::fail(core::ErrorCode::kInternal, "the engine failed");
    async::post(given.calls[i].executor,
                [done = given.calls[i].done, outcome] { done->set(outcome); });
  }
  for (GroupNews& news : turn.news) {
    const auto client = clients.find(news.group.value);
    if (client == clients.end()) continue;
    if (news.error) news.error = without_group(std::move(*news.error), news.group);
    client->second.left -= static_cast<std::int32_t>(news.finished.size());
    const bool over = news.error.has_value() || client->second.left <= 0;
    const Client told = client->second;
    if (over) forget(news.group.value);
    tell(told, std::move(news));
  }
  if (turn.swapped || turn.intake_error) {
    intake.reset();
    const Swapped call = std::exchange(swapped, nullptr);
    if (call && turn.swapped) call(*turn.swapped);
    if (call && !turn.swapped) call(core::fail(*turn.intake_error));
  }
}

async::task<void> EnginePump::Impl::loop(Impl* self) {
  for (;;) {
    if (!self->waits()) {
      const bool woken = co_await self->changed.wait(async::Deadline::none());
      static_cast<void>(woken);
      continue;
    }
    auto given = std::make_shared<Work>(std::exchange(self->work, Work()));
    given->engine.intake = self->intake;
    given->engine.kv = self->kv;
    auto job = [self, given] { return self->turn(*given); };
    auto turn = co_await self->thread.run(std::move(job));
    self->deliver(*given, turn ? std::move(*turn) : self->broken(turn.error()));
  }
}

EnginePump::EnginePump(async::IoThreads& io, std::unique_ptr<engine::EngineDriver> driver)
    : impl_(std::make_unique<Impl>(io, std::move(driver))) {
  impl_->strand_scope.start(Impl::loop(impl_.get()));
}

EnginePump::~EnginePump() {
  stop();
}

void EnginePump::submit(engine::GroupRequest request,
                        bool stream,
                        async::Executor executor,
                        Listener listener) {
  const engine::Watch watch = stream ? engine::Watch::kStream : engine::Watch::kFirstToken;
  auto given = std::make_shared<engine::Submission>(engine::Submission{std::move(request), watch});
  Impl::Client client{std::move(executor), std::make_shared<const Listener>(std::move(listener)),
                      given->request.samples, given->request.owner};
  async::post(impl_->strand_scope.executor(),
              [impl = impl_.get(), given, client = std::move(client)] {
                const std::uint32_t owner = client.owner;
                if (owner != 0 && !impl->has_room(owner)) {
                  GroupNews news;
                  news.group = given->request.id;
                  news.error = core::Error{core::ErrorCode::kOverloaded,
                                           "the key's share of the queue is full; try again later"};
                  return impl->tell(client, std::move(news));
                }
                if (owner != 0) ++impl->groups[owner];
                impl->clients[given->request.id.value] = client;
                impl->work.engine.submits.push_back(std::move(*given));
                impl->changed.notify_all();
              });
}

void EnginePump::abort(core::GroupId group) {
  async::post(impl_->strand_scope.executor(), [impl = impl_.get(), group] {
    if (!impl->forget(group.value)) return;
    impl->work.engine.aborts.push_back(group);
    // Drops the group if it has not been submitted to the engine yet.
    std::erase_if(impl->work.engine.submits,
                  [group](const engine::Submission& one) { return one.request.id == group; });
    impl->changed.notify_all();
  });
}

void EnginePump::take_weights(std::shared_ptr<weights::WeightIntake> intake,
                              engine::KvAction kv,
                              Swapped swapped) {
  async::post(impl_->strand_scope.executor(),
              [impl = impl_.get(), intake = std::move(intake), kv, swapped = std::move(swapped)] {
                impl->intake = intake;
                impl->kv = kv;
                impl->swapped = swapped;
                impl->changed.notify_all();
              });
}

async::task<core::Result<void>> EnginePump::on_engine(Call call) {
  auto done = std::make_shared<async::Oneshot<core::Result<void>>>();
  auto executor = co_await boost::asio::this_coro::executor;
  ControlCall control{std::move(call), done, std::move(executor)};
  async::post(impl_->strand_scope.executor(), [impl = impl_.get(), control = std::move(control)] {
    impl->work.calls.push_back(control);
    impl->changed.notify_all();
  });
  auto taken = co_await async::Oneshot<core::Result<void>>::take(done);
  co_return taken;
}

PumpCounters EnginePump::counters() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->counters;
}

void EnginePump::stop() {
  if (std::exchange(impl_->stopped, true)) return;
  impl_->strand_scope.stop();
  impl_->thread.close();
}

}  // namespace troupe::serving
