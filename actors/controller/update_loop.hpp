// The training loop. For each update it waits until all groups are ready, has the policy learn and
// publish, has data commit, evaluates and saves. With staleness 0 this is the synchronous run. Part
// of the controller, on its strand; everything it is given outlives it.
#pragma once

#include "actors/controller/checkpointer.hpp"
#include "actors/controller/early_stop.hpp"
#include "actors/controller/evaluator.hpp"
#include "actors/controller/fleet.hpp"
#include "actors/controller/run_state.hpp"
#include "actors/controller/ticket_issuer.hpp"
#include "actors/protocol/messages_node.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace troupe::actors::controller {

class UpdateLoop {
 public:
  // `generators` get weights; `tickets` samples tickets.
  UpdateLoop(RunState& run,
             Fleet& generators,
             Fleet& tickets,
             TicketIssuer& issuer,
             Checkpointer& checkpointer,
             EarlyStop& stop);

  // Runs until the last update is done. kInterrupted: a stop was asked for.
  async::task<core::Result<void>> run();
  // Stops cutting stragglers.
  void stop_watching() { straggler_timer_.disarm(); }

  // `told` is called with each version, before any generator hears of it.
  void when_published(std::function<void(const Published&)> told) { told_ = std::move(told); }
  async::task<core::Result<Published>> await_published(AwaitPublished request);

  // Tokens trained on in this session; index: age in updates.
  const std::vector<std::uint64_t>& staleness() const noexcept { return staleness_; }

 private:
  async::task<core::Result<void>> one_update(std::uint64_t update);
  async::task<core::Result<GroupStatuses>> collect(std::uint64_t update);
  async::task<core::Result<void>> write_down(std::uint64_t update, UpdateReport report);
  async::task<core::Result<void>> commit(std::uint64_t update);
  async::task<core::Result<void>> publish(std::uint64_t update);
  async::task<core::Result<bool>> after_update(std::uint64_t done);  // true: asked to stop
  async::task<core::Result<void>> prompts_used_up(core::Error error);
  void report_groups(const GroupStatuses& statuses, UpdateReport& report);
  void watch_stragglers(std::uint64_t update);

  RunState& run_;
  Fleet& generators_;
  Fleet& tickets_;
  TicketIssuer& issuer_;
  Checkpointer& checkpointer_;
  EarlyStop& stop_;
  Evaluator evaluator_;
  async::Notifier news_;  // a newer version was published
  std::function<void(const Published&)> told_;
  async::Timer straggler_timer_;
  std::vector<std::uint64_t> staleness_;
};

}  // namespace troupe::actors::controller
