// The generator role samples the groups of its tickets with one engine. It fetches the prompts from
// the data role, holds each group until the engine's weights are new enough, and delivers it to the
// data role as soon as its last sample has ended; the controller gets only counts. While sampling
// goes on it fetches new weights; the engine packs them between steps, in slices, and then swaps.
//
// Runs on its strand; the engine runs on the device thread, one turn a job, so that other roles of
// the process can use that thread, too; a thread of its own waits for weights. Bounds: the engine's
// limits; kFetchTickets_max prompts per message; one delivery in flight per group.
#pragma once

#include "actors/generator/call_book.hpp"
#include "actors/generator/group_book.hpp"
#include "actors/generator/weight_follower.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/engine/driver.hpp"
#include "runtime/guide/guide_maker.hpp"
#include "runtime/wire/role_report.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::actors::generator {

using engine::EngineMaker;

class GeneratorRole {
 public:
  // `fetch_thread` is used only to wait for weights; it outlives the role. `context` needs a device
  // thread and a team. `sleep_idle`: an idle engine frees its KV cache.
  // `guides`: of grammars of calls; null: calls with a grammar are refused.
  GeneratorRole(RoleContext context,
                EngineMaker maker,
                std::shared_ptr<const engine::TokenText> text,
                std::shared_ptr<weights::WeightSubscriber> subscriber,
                async::DeviceQueue& fetch_thread,
                std::string data_peer,
                bool sleep_idle = false,
                std::shared_ptr<guide::GuideMaker> guides = nullptr);

  // A repeated request joins the groups that are under way. A group that was delivered already is
  // sampled again from the same seed, and the data role drops it.
  async::task<core::Result<Generated>> on(Generate request);
  // A repeated request joins the call that is under way; one that was answered is sampled again,
  // with the same bits.
  async::task<core::Result<Completed>> on(Complete request);
  // Ignores groups that are gone already.
  async::task<core::Result<Ack>> on(CutGroups request);
  // A repeated request waits for the same version, or answers at once when the engine has it.
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
  CallBook calls_;
  std::vector<core::GroupId> aborts_;  // for the next turn
  engine::EngineCounters counters_;
  std::uint64_t tokens_ = 0;  // sampled and delivered
  const bool sleep_idle_;
  const std::shared_ptr<guide::GuideMaker> guides_;
  bool resting_ = false;  // the idle engine has freed its KV cache
  bool pumping_ = false;
  bool fetching_ = false;
};

}  // namespace troupe::actors::generator
