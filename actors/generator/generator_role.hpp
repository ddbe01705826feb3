// The generator role samples the groups of its tickets with one engine. It fetches the prompts from
// the data role, holds each group until the engine's weights are new enough, and delivers it to the
// data role as soon as its last sample has ended; the controller gets only counts. New weights are
// fetched while sampling goes on, packed in slices between steps and swapped at a step boundary.
//
// Runs on its strand; the engine runs on the device thread, one turn a job, so that other roles of
// the process can use it, too; weights are fetched on a thread that may block. Bounds: the engine's
// limits; kFetchTickets_max prompts a message; one delivery in flight a group.
#pragma once

#include "actors/generator/group_book.hpp"
#include "actors/generator/weight_follower.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/engine/driver.hpp"
#include "runtime/wire/role_report.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::actors {

using engine::EngineMaker;

class GeneratorRole {
 public:
  // `fetch_thread` is used only to wait for weights; it outlives the role. The context has the
  // device thread and the team on it. `sleep_idle`: an idle engine frees its KV cache.
  GeneratorRole(RoleContext context,
                EngineMaker maker,
                std::shared_ptr<const engine::TokenText> text,
                std::shared_ptr<weights::WeightSubscriber> subscriber,
                async::DeviceQueue& fetch_thread,
                std::string data_peer,
                bool sleep_idle = false);

  // Repeated: joins the groups that are under way. A group that was already delivered is sampled
  // again from the same seed; the data role drops it.
  async::task<core::Result<Generated>> on(Generate request);
  // Repeated: ignores groups that are already gone.
  async::task<core::Result<Ack>> on(CutGroups request);
  // Repeated: waits for the same version; at once when the engine has it or a newer one.
  async::task<core::Result<Ack>> on(UpdateWeights request) {
    return weights_.update(std::move(request));
  }

  std::string state() const;
  wire::Amounts amounts() const;

 private:
  async::task<void> fetch_prompts();
  async::task<void> fetch_some(std::vector<experience::Ticket> tickets);
  void wake();
  engine::EngineWork next_work();
  async::task<void> pump();
  async::task<core::Result<engine::EngineTurn>> take_turn(engine::EngineWork work);
  void digest(engine::EngineTurn turn, const std::vector<core::GroupId>& aborts);
  void fail_running(const core::Error& error);
  async::task<void> deliver(PutGroup group);
  void say_idle();

  RoleContext context_;
  std::shared_ptr<engine::EngineDriver> driver_;  // shared with its jobs on the device thread
  std::shared_ptr<const engine::TokenText> text_;
  std::string data_peer_;
  WeightFollower weights_;
  GroupBook book_;
  std::vector<core::GroupId> aborts_;  // for the next turn
  engine::EngineCounters counters_;
  std::uint64_t tokens_ = 0;  // sampled and delivered
  const bool sleep_idle_;
  bool resting_ = false;
  bool pumping_ = false;
  bool fetching_ = false;
};

}  // namespace troupe::actors
