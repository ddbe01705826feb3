// Shares the one engine of `troupe serve` among all requests: accepts groups from any thread, runs
// the engine on a thread of its own, and passes each group's news to its listener. Its state lives
// on the pump's strand. Owned by the command; the io threads outlive it. Bounds: the engine's queue
// (kOverloaded) and the server's connections bound the groups; the request bounds a group's news.
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

// A copy of the engine's counters and state as of the last turn.
struct PumpCounters {
  engine::EngineCounters engine;
  engine::EngineState state;
  core::Version version = 0;
  bool ready = false;  // the engine has been made, from its first weights
};

class EnginePump {
 public:
  using Listener = std::function<void(engine::GroupNews)>;

  // `driver` may have no engine yet; take_weights then makes it.
  EnginePump(async::IoThreads& io, std::unique_ptr<engine::EngineDriver> driver);
  ~EnginePump();  // stop()
  EnginePump(const EnginePump&) = delete;
  EnginePump& operator=(const EnginePump&) = delete;

  core::GroupId next_id() noexcept { return {next_.fetch_add(1)}; }

  // Submits a group. Calls `listener` on `executor` with its news until all samples have finished,
  // an error is reported, or `abort` is called (news already posted may still arrive then). News
  // has `grown` only if `stream` is set. Any thread.
  void submit(engine::GroupRequest request,
              bool stream,
              async::Executor executor,
              Listener listener);
  // Ends the group and frees its KV blocks after the engine's current turn. Does nothing for
  // unknown ids. Any thread.
  void abort(core::GroupId group);

  // Packs new weights in slices between steps and swaps to them, then calls `swapped` on the pump's
  // strand with their version or an error. One intake at a time.
  using Swapped = std::function<void(core::Result<core::Version>)>;
  void take_weights(std::shared_ptr<weights::WeightIntake> intake,
                    engine::KvAction kv,
                    Swapped swapped);

  // Runs `call` on the engine's thread between two turns, and passes the news that it returns (such
  // as groups ended by a pause) to the listeners. Errors: those of `call`; kClosed before the first
  // weights.
  using Call = std::function<core::Result<std::vector<engine::GroupNews>>(engine::EngineDriver&)>;
  async::task<core::Result<void>> on_engine(Call call);

  PumpCounters counters() const;

  // Lets the current turn finish, and calls no listener after that. Not on an io thread.
  // Idempotent.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::atomic<std::uint64_t> next_{1};
};

}  // namespace troupe::app
