// One coroutine on the pump's strand: collects what has come in, runs a turn on the device thread,
// hands its news out.
#include "apps/serving/engine_pump.hpp"

#include "apps/serving/engine_watch.hpp"
#include "kernels/ops.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/async/notifier.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/net/strand_scope.hpp"

#include <unordered_map>
#include <utility>

namespace troupe::app {

namespace {

struct Submit {
  engine::GroupRequest request;
  bool stream = false;
};

// The engine calls a group by its number, which says nothing to a client.
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
  Impl(async::IoThreads& io, std::unique_ptr<actors::EngineBench> made)
      : bench(std::move(made)), strand_scope(io), changed(timers) {}

  struct Client {
    async::Executor executor;
    std::shared_ptr<const Listener> listener;
    std::int32_t left = 0;  // samples that have not finished
  };
  struct Work {
    std::vector<core::GroupId> aborts;
    std::vector<Submit> submits;
    std::vector<ControlCall> calls;
    std::shared_ptr<weights::WeightIntake> intake;
    engine::KvAction kv = engine::KvAction::kRecompute;
  };
  struct Turn {
    std::vector<GroupNews> news;
    std::vector<core::Result<void>> calls;  // outcomes, in their order
    std::optional<core::Version> swapped;
    std::optional<core::Error> intake_error;
    PumpCounters counters;
    bool busy = false;  // there is more to compute
  };

  static async::task<void> loop(Impl* self);
  core::Result<Turn> turn(Work& work);
  void step(Work& work, std::vector<engine::Sample> ended, Turn& turn);
  void fail_groups(const core::Error& error, Turn& turn);
  void deliver(Work& work, Turn turn);
  static void tell(const Client& client, GroupNews news);
  bool waits() const {
    return busy || intake || !work.aborts.empty() || !work.submits.empty() || !work.calls.empty();
  }

  // On the engine's thread.
  std::unique_ptr<actors::EngineBench> bench;
  EngineWatch watch;
  core::Version version = 0;  // the newest that the engine held

  async::SteadyTimers timers;
  net::StrandScope strand_scope;
  async::Notifier changed;
  async::DeviceThread thread{"engine", &kernels::flush_denormals};

  // On the strand.
  Work work;
  std::unordered_map<std::uint64_t, Client> clients;
  std::shared_ptr<weights::WeightIntake> intake;
  engine::KvAction kv = engine::KvAction::kRecompute;
  Swapped swapped;
  bool busy = false;

  mutable std::mutex mutex;  // of `counters`
  PumpCounters counters;
  bool stopped = false;
};

void EnginePump::Impl::fail_groups(const core::Error& error, Turn& turn) {
  engine::Engine& engine = *bench->engine();
  std::vector<core::GroupId> broken = watch.groups();
  if (const auto one = engine.broken_group()) broken = {*one};
  for (const core::GroupId id : broken) {
    engine.abort(id);
    watch.drop(id);
    GroupNews news;
    news.group = id;
    news.error = without_group(error, id);
    turn.news.push_back(std::move(news));
  }
}

// `ended`: by calls.
void EnginePump::Impl::step(Work& given, std::vector<engine::Sample> ended, Turn& turn) {
  core::Result<actors::EngineTurn> stepped = actors::EngineTurn();
  if (bench->engine() == nullptr || bench->engine()->state().awake() || given.intake) {
    actors::EngineWork pack;
    pack.intake = given.intake;
    pack.kv = given.kv;
    stepped = bench->turn(std::move(pack));
  }
  engine::Engine* const engine = bench->engine();
  if (stepped) {
    turn.swapped = stepped->swapped;
    turn.intake_error = stepped->intake_error;
    for (engine::Sample& sample : stepped->finished)
      ended.push_back(std::move(sample));
  } else if (engine != nullptr) {
    for (GroupNews& one : watch.look(*engine, std::exchange(ended, {})))  // drawn before it failed
      turn.news.push_back(std::move(one));
    fail_groups(stepped.error(), turn);
  } else {
    turn.intake_error = stepped.error();
  }
  if (engine == nullptr) return;
  for (GroupNews& one : watch.look(*engine, std::move(ended)))
    turn.news.push_back(std::move(one));
}

core::Result<EnginePump::Impl::Turn> EnginePump::Impl::turn(Work& given) {
  Turn turn;
  engine::Engine* engine = bench->engine();
  std::vector<engine::Sample> ended;
  for (const ControlCall& control : given.calls) {
    if (engine == nullptr) {
      turn.calls.push_back(core::fail(core::ErrorCode::kClosed, "there are no weights yet"));
      continue;
    }
    auto outcome = control.call(*engine);
    turn.calls.push_back(outcome ? core::Result<void>() : outcome.failure());
    if (!outcome) continue;
    for (engine::Sample& sample : *outcome)
      ended.push_back(std::move(sample));
  }
  for (const core::GroupId id : given.aborts) {
    if (engine != nullptr) engine->abort(id);
    watch.drop(id);
  }
  for (Submit& one : given.submits) {
    const core::GroupId id = one.request.id;
    const std::int32_t samples = one.request.samples;
    core::Result<void> taken = core::fail(core::ErrorCode::kClosed, "there are no weights yet");
    if (engine != nullptr) taken = engine->submit(std::move(one.request));
    if (taken) {
      watch.add(id, samples, one.stream);
      continue;
    }
    GroupNews news;
    news.group = id;
    news.error = without_group(taken.error(), id);
    turn.news.push_back(std::move(news));
  }
  step(given, std::move(ended), turn);
  engine = bench->engine();
  if (engine != nullptr) {
    turn.counters.engine = engine->counters();
    const engine::EngineState state = engine->state();
    turn.counters.state = state;
    if (state.weights == engine::WeightsState::kAwake) version = engine->weights().version();
    turn.counters.version = version;
    turn.counters.ready = true;
    turn.busy = !engine->idle() && state.awake() && !state.paused;
  }
  return turn;
}

void EnginePump::Impl::tell(const Client& client, GroupNews news) {
  auto listener = client.listener;
  auto shared = std::make_shared<GroupNews>(std::move(news));
  async::post(client.executor, [listener, shared] { (*listener)(std::move(*shared)); });
}

void EnginePump::Impl::deliver(Work& given, Turn turn) {
  {
    const std::lock_guard lock(mutex);
    counters = turn.counters;
  }
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
    client->second.left -= static_cast<std::int32_t>(news.finished.size());
    const bool over = news.error.has_value() || client->second.left <= 0;
    const Client told = client->second;
    if (over) clients.erase(client);
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
    given->intake = self->intake;
    given->kv = self->kv;
    auto job = [self, given] { return self->turn(*given); };
    auto turn = co_await self->thread.run(std::move(job));
    if (!turn) {  // an exception of the engine: nothing it says can be trusted any more
      Turn broken;
      for (const auto& [id, client] : self->clients) {
        GroupNews news;
        news.group = {id};
        news.error = turn.error();
        broken.news.push_back(std::move(news));
      }
      self->deliver(*given, std::move(broken));
      continue;
    }
    self->deliver(*given, std::move(*turn));
  }
}

EnginePump::EnginePump(async::IoThreads& io, std::unique_ptr<actors::EngineBench> bench)
    : impl_(std::make_unique<Impl>(io, std::move(bench))) {
  Impl* const impl = impl_.get();
  if (engine::Engine* const engine = impl->bench->engine()) {
    impl->counters.engine = engine->counters();
    impl->counters.version = engine->weights().version();
    impl->counters.ready = true;
  }
  impl->strand_scope.start(Impl::loop(impl));
}

EnginePump::~EnginePump() {
  stop();
}

void EnginePump::submit(engine::GroupRequest request,
                        bool stream,
                        async::Executor executor,
                        Listener listener) {
  auto given = std::make_shared<Submit>(Submit{std::move(request), stream});
  Impl::Client client{std::move(executor), std::make_shared<const Listener>(std::move(listener)),
                      given->request.samples};
  async::post(impl_->strand_scope.executor(),
              [impl = impl_.get(), given, client = std::move(client)] {
                impl->clients[given->request.id.value] = client;
                impl->work.submits.push_back(std::move(*given));
                impl->changed.notify_all();
              });
}

void EnginePump::abort(core::GroupId group) {
  async::post(impl_->strand_scope.executor(), [impl = impl_.get(), group] {
    if (impl->clients.erase(group.value) == 0) return;
    impl->work.aborts.push_back(group);
    // A group that was not handed to the engine yet never will be.
    std::erase_if(impl->work.submits,
                  [group](const Submit& one) { return one.request.id == group; });
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
  impl_->strand_scope.stop([] {});
  impl_->thread.close();
}

}  // namespace troupe::app
