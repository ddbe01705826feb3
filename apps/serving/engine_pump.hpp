// Shares the one engine of `troupe serve` among all requests: accepts groups from any thread, runs
// the engine step by step on a thread of its own, and passes each group's news to its listener.
// State lives on the pump's strand. Owned by the command; the io threads outlive it. Bounds: groups
// are bounded by the engine's queue (kOverloaded) and the server's connections; news of a group is
// at most what its request asked for.
#pragma once

#include "runtime/async/deadline.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/async/task.hpp"
#include "runtime/engine/driver.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace troupe::app {

// For /metrics; a copy.
struct PumpCounters {
  engine::EngineCounters engine;
  engine::EngineState state;
  core::Version version = 0;
  bool ready = false;  // the engine holds weights
};

class EnginePump {
 public:
  using Listener = std::function<void(engine::GroupNews)>;

  // `driver` may have no engine until take_weights.
  EnginePump(async::IoThreads& io, std::unique_ptr<engine::EngineDriver> driver);
  ~EnginePump();  // stop()
  EnginePump(const EnginePump&) = delete;
  EnginePump& operator=(const EnginePump&) = delete;

  core::GroupId next_id() noexcept { return {next_.fetch_add(1)}; }

  // Any thread. The listener is called on `executor` until the group is over: all samples finished,
  // an error, or `abort`, after which news already posted may still arrive. `grown` comes only when
  // `stream` is set.
  void submit(engine::GroupRequest request,
              bool stream,
              async::Executor executor,
              Listener listener);
  // Any thread. Frees the group's KV blocks after the engine's current turn. Unknown ids do
  // nothing.
  void abort(core::GroupId group);

  // New weights: packed in slices between steps and swapped in. `swapped` is called on the pump's
  // strand with the version or the reason. One at a time.
  using Swapped = std::function<void(core::Result<core::Version>)>;
  void take_weights(std::shared_ptr<weights::WeightIntake> intake,
                    engine::KvAction kv,
                    Swapped swapped);

  // Runs `call` on the engine's thread between two turns and passes the news that it returns (as of
  // a pause) to the listeners. Errors: those of `call`; kClosed.
  using Call = std::function<core::Result<std::vector<engine::GroupNews>>(engine::EngineDriver&)>;
  async::task<core::Result<void>> on_engine(Call call);

  PumpCounters counters() const;

  // Finishes the current turn; calls no listener any more. Not on an io thread. Idempotent.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::atomic<std::uint64_t> next_{1};
};

}  // namespace troupe::app
