// The groups that a generator was asked to sample, and the state of each. A pure state machine: no
// clock, no thread, no message. Groups go to the engine in ticket order, evaluations first.
//
//   asked -> fetching (its prompt) -> held (until the weights are new enough) -> running
//         -> leaving (being delivered)
//
// A repeated request for a ticket joins the group that the book has. Owned by the generator role,
// used on its strand. Bound: the groups that the controller sends at a time.
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

namespace troupe::actors::generator {

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

  // The next tickets whose prompts must be fetched; they become `fetching`.
  std::vector<experience::Ticket> take_asked(std::size_t count_max);
  void put_prompt(PromptTask task);

  // Engine requests for the held groups that an engine with this version may run; these groups
  // become `running`.
  std::vector<engine::GroupRequest> submit(core::Version version);

  // Adds a sample that ended in the engine. Returns the whole group after its last sample.
  std::optional<PutGroup> put_sample(engine::Sample sample);

  // Cuts stragglers. Returns the groups that the engine must abort; call `aborted` for each then.
  // The others have nothing to deliver and end with kDeadline.
  std::vector<core::GroupId> cut(const std::vector<experience::Ticket>& tickets);
  // The samples of an aborted group that had ended, if there are two or more. With fewer it ends
  // the group with kDeadline and returns nothing. Does nothing for a group that is gone already.
  std::optional<PutGroup> aborted(core::GroupId id);

  // Ends a group for all its requests. `delivered` is null when there was nothing to deliver.
  void end(const experience::Ticket& ticket,
           const PutGroup* delivered,
           const std::optional<core::Error>& error);
  // The running groups with their tickets; used when the engine failed.
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
  struct Before {  // ticket order, evaluations first
    bool operator()(const experience::Ticket& a, const experience::Ticket& b) const;
  };

  std::size_t count(State state) const;
  PutGroup leave(core::GroupId id, bool cut);
  void retire(const experience::Ticket& ticket);  // ends a cut group with kDeadline

  std::map<experience::Ticket, Group, Before> groups_;
  std::map<core::GroupId, experience::Ticket> running_;
  std::uint64_t next_group_ = 1;
};

}  // namespace troupe::actors::generator
