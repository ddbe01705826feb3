// Shares the one engine of `troupe serve` among all requests: accepts groups from any thread, runs
// the engine on a thread of its own, and passes each group's news to its listener. Its state lives
// on the pump's strand. Owned by the command; the io threads outlive it. Bounds: the engine's queue
// (kOverloaded) and the server's connections bound the groups; the request bounds a group's news.
#pragma once

#include "runtime/async/deadline.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/async/task.hpp"
#include "runtime/dialects/sampler.hpp"
#include "runtime/engine/driver.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

namespace troupe::serving {

// A copy of the engine's counters and state as of the last turn.
struct PumpCounters {
  engine::EngineCounters engine;
  engine::EngineState state;
  core::Version version = 0;
  bool ready = false;  // the engine has been made, from its first weights
};

class EnginePump final : public dialects::Sampler {
 public:
  // `driver` may have no engine yet; take_weights then makes it.
  EnginePump(async::IoThreads& io, std::unique_ptr<engine::EngineDriver> driver);
  ~EnginePump() override;  // stop()
  EnginePump(const EnginePump&) = delete;
  EnginePump& operator=(const EnginePump&) = delete;

  core::GroupId next_id() override { return {next_.fetch_add(1)}; }
  void submit(engine::GroupRequest request,
              bool stream,
              async::Executor executor,
              Listener listener) override;
  // The group's KV blocks are freed after the engine's current turn.
  void abort(core::GroupId group) override;
  core::Version version() const override { return counters().version; }

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

}  // namespace troupe::serving
