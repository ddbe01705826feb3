// What a generator was asked to sample and how far each group is. A pure state machine: no clock,
// no thread, no message. Groups are kept in ticket order, evaluations first, and go to the engine
// in it.
//
//   asked -> fetching (its prompt) -> held (until the weights are new enough) -> running -> leaving
//
// A ticket that is asked for again joins the group that is there. Owned by the generator role, used
// on its strand. Bound: the groups that the controller sends at a time.
#pragma once

#include "actors/protocol/messages.hpp"
#include "runtime/async/event.hpp"
#include "runtime/core/error.hpp"
#include "runtime/engine/types.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace troupe::actors {

// One Generate request and what it still waits for.
struct GenerateCall {
  std::size_t open = 0;
  Generated totals;
  std::optional<core::Error> error;
  std::shared_ptr<async::Event> done = std::make_shared<async::Event>();
};

class GroupBook {
 public:
  void ask(const experience::Ticket& ticket,
           const SamplingSpec& sampling,
           core::Version version_min,
           std::shared_ptr<GenerateCall> call);

  // The next tickets whose prompts are to be fetched.
  std::vector<experience::Ticket> take_asked(std::size_t count_max);
  void put_prompt(PromptTask task);

  // Requests for the groups that an engine of this version may run. They count as running from now
  // on.
  std::vector<engine::GroupRequest> submit(core::Version version);

  // A sample that ended in the engine; the group with its last one.
  std::optional<PutGroup> put_sample(engine::Sample sample);

  // Cuts stragglers. Groups in the engine are named for it to abort; `aborted` follows. The others
  // have nothing to deliver and end with kDeadline.
  std::vector<core::GroupId> cut(const std::vector<experience::Ticket>& tickets);
  // What had ended of an aborted group: two samples or more. With fewer it ends with kDeadline.
  // Nothing at all for a group that had ended before.
  std::optional<PutGroup> aborted(core::GroupId id);

  // The group is done with, for all who asked for it. `delivered` is null where nothing came of it.
  void end(const experience::Ticket& ticket,
           const PutGroup* delivered,
           const std::optional<core::Error>& error);
  // Running groups and their tickets, after the engine failed.
  std::vector<std::pair<core::GroupId, experience::Ticket>> running_groups() const;
  std::optional<experience::Ticket> ticket_of(core::GroupId id) const;

  std::size_t asked() const { return count(State::kAsked) + count(State::kFetching); }
  std::size_t held() const { return count(State::kHeld); }
  std::size_t running() const noexcept { return running_.size(); }
  std::size_t size() const noexcept { return groups_.size(); }

 private:
  enum class State { kAsked, kFetching, kHeld, kRunning, kLeaving };
  struct Group {
    State state = State::kAsked;
    SamplingSpec sampling;
    core::Version version_min = 0;
    PromptTask task;
    std::vector<engine::Sample> samples;
    std::vector<std::shared_ptr<GenerateCall>> calls;
  };
  struct Before {
    bool operator()(const experience::Ticket& a, const experience::Ticket& b) const;
  };

  std::size_t count(State state) const;
  PutGroup leave(core::GroupId id, bool cut);
  void retire(const experience::Ticket& ticket);  // nothing came of it in time

  std::map<experience::Ticket, Group, Before> groups_;
  std::map<core::GroupId, experience::Ticket> running_;
  std::uint64_t next_group_ = 1;
};

}  // namespace troupe::actors
