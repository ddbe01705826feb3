// A data role that follows a script, checks what reaches it, and counts the ages of the tokens that
// are trained on.
#pragma once

#include "actors/protocol/messages_rewards.hpp"
#include "actors/protocol/role_shell.hpp"
#include "tests/unit/actors/controller/script.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace troupe::actors::testing {

using experience::GroupState;

class ScriptedData {
 public:
  ScriptedData(RoleContext context, const Script& script, Events& events)
      : context_(std::move(context)),
        script_(script),
        events_(events),
        changed_(*context_.timers) {}

  async::task<core::Result<Tickets>> on(IssueTickets request) {
    const bool fresh = groups_[request.update].empty();
    if (fresh && used_up(request.update, request.groups)) co_return no_more();
    events_.push_back("issue " + text_of({request.update, 0, 0}));
    Tickets reply;
    for (std::uint32_t slot = 0; slot < request.groups; ++slot) {
      Group& group = groups_[request.update][slot];
      if (group.prompt == 0) {
        group.ticket = {request.update, slot, 0};
        group.prompt = ++prompts_;
        group.version_min = request.version_min;
      }
      add(group, reply);
    }
    co_return reply;
  }

  async::task<core::Result<Tickets>> on(ReissueTickets request) {
    if (used_up(request.tickets.at(0).update, request.tickets.size())) co_return no_more();
    Tickets reply;
    for (const experience::Ticket& ticket : request.tickets) {
      events_.push_back("reissue " + text_of(ticket));
      Group& group = groups_.at(ticket.update).at(ticket.slot);
      EXPECT_EQ(group.ticket, ticket);
      EXPECT_NE(group.state, GroupState::kReady);
      const core::Version version_min = group.version_min;
      group = Group{};
      group.ticket = {ticket.update, ticket.slot, ticket.attempt + 1};
      group.prompt = ++prompts_;
      group.version_min = version_min;
      add(group, reply);
    }
    co_return reply;
  }

  async::task<core::Result<Ack>> on(PutGroup request) {
    const auto update = groups_.find(request.ticket.update);
    if (update == groups_.end()) co_return Ack{};
    Group& group = update->second.at(request.ticket.slot);
    if (group.ticket != request.ticket || group.state != GroupState::kIssued) {
      ++doubled_deliveries;
      co_return Ack{};
    }
    events_.push_back((request.cut ? "cut put " : "put ") + text_of(request.ticket));
    group.state = GroupState::kGenerated;
    group.samples = std::move(request.samples);
    context_.scope->spawn("score", score(request.ticket));
    co_return Ack{};
  }

  async::task<core::Result<Ack>> on(SetAside request) {
    events_.push_back("set aside " + text_of(request.ticket) + ": " + request.cause);
    Group& group = groups_.at(request.ticket.update).at(request.ticket.slot);
    EXPECT_EQ(group.ticket, request.ticket);
    group.state = GroupState::kFailed;
    changed_.notify_all();
    co_return Ack{};
  }

  async::task<core::Result<GroupStatuses>> on(AwaitGroups request) {
    auto& slots = groups_[request.update];
    while (!settled(slots)) {
      const bool woken = co_await changed_.wait(async::Deadline::none());
      static_cast<void>(woken);
    }
    GroupStatuses reply;
    reply.staleness.resize(std::max<std::size_t>(request.starts.size(), 1));
    for (auto& [slot, group] : slots) {
      GroupStatus status;
      status.ticket = group.ticket;
      status.state = group.state;
      status.filtered = group.state == GroupState::kFailed && script_.filtered(group.ticket);
      if (group.state == GroupState::kFailed)
        status.cause = status.filtered ? "mean 1" : "no score";
      status.samples = static_cast<std::uint32_t>(group.samples.size());
      status.row = row_of(group);
      reply.prompts = script_.rows;
      if (status.ready()) count(request, group, reply);
      reply.groups.push_back(std::move(status));
    }
    co_return reply;
  }

  async::task<core::Result<Ack>> on(CommitUpdate request) {
    if (commits_full_ < script_.commits_full) {
      ++commits_full_;
      co_return core::fail(core::ErrorCode::kNoRoom, "no room");
    }
    events_.push_back("commit " + text_of({request.update, 0, 0}));
    for (auto& [slot, group] : groups_.at(request.update)) {
      const bool held_out = experience::is_evaluation(request.update);
      EXPECT_TRUE(group.state == GroupState::kReady ||
                  (held_out && group.state == GroupState::kFailed))
          << text_of(group.ticket);
      if (held_out) {
        for (const auto& sample : group.samples) {
          for (const core::Version version : sample.versions) {
            EXPECT_EQ(version, 2 * request.after_step) << text_of(group.ticket);
          }
        }
        continue;
      }
      EXPECT_TRUE(trained_prompts.insert(group.prompt).second) << text_of(group.ticket);
      ++trained[group.ticket];
      measure(request.update, group);
    }
    groups_.erase(request.update);
    co_return Ack{};
  }

  async::task<core::Result<Ack>> on(SetRewards request) {
    std::string members, lost;
    for (const auto& member : request.members)
      members += " " + member.name;
    for (const auto& name : request.lost)
      lost += " -" + name;
    events_.push_back("rewards " + std::to_string(request.set) + " from u" +
                      std::to_string(request.from_update) + ":" + members + lost);
    co_await async::sleep_for(*context_.timers, reward_change_time);
    events_.push_back("rewards " + std::to_string(request.set) + " set");
    co_return Ack{};
  }

  async::task<core::Result<Ack>> on(DrainReward request) {
    events_.push_back("drain " + request.name);
    co_await async::sleep_for(*context_.timers, 200ms);
    events_.push_back("drained " + request.name);
    co_return Ack{};
  }

  async::task<core::Result<Ack>> on(SaveState) {
    events_.push_back("save");
    co_return Ack{};
  }

  std::set<std::uint64_t> trained_prompts;
  std::map<experience::Ticket, int> trained;    // how often each ticket was trained on
  std::map<std::uint64_t, std::uint64_t> ages;  // tokens by age in updates
  std::vector<std::uint64_t> lengths;
  std::uint64_t tokens = 0;
  std::uint64_t doubled_deliveries = 0;
  core::Duration reward_change_time = 1ms;

 private:
  struct Group {
    experience::Ticket ticket;
    std::uint64_t prompt = 0;
    core::Version version_min = 0;
    GroupState state = GroupState::kIssued;
    std::vector<experience::Trajectory> samples;
  };
  using Slots = std::map<std::uint32_t, Group>;

  std::uint64_t row_of(const Group& group) const {
    return script_.rows == 0 ? group.prompt : group.prompt % script_.rows;
  }
  void add(const Group& group, Tickets& reply) const {
    reply.tickets.push_back(group.ticket);
    reply.rows.push_back(row_of(group));
    reply.prompts = script_.rows;
  }

  async::task<core::Result<void>> score(experience::Ticket ticket) {
    co_await async::sleep_for(*context_.timers, script_.score_time);
    Group& group = groups_.at(ticket.update).at(ticket.slot);
    if (group.ticket == ticket) {
      const bool failed = script_.fails(ticket) || script_.filtered(ticket) ||
                          (script_.rows > 0 && script_.bad_row(row_of(group)));
      group.state = failed ? GroupState::kFailed : GroupState::kReady;
      changed_.notify_all();
    }
    co_return core::Result<void>();
  }

  bool used_up(std::uint64_t update, std::size_t wanted) const {
    return script_.prompts_max > 0 && !experience::is_evaluation(update) &&
           prompts_ + wanted > script_.prompts_max;
  }
  static core::Failure no_more() {
    return core::fail(core::ErrorCode::kNotFound, "the prompts are used up");
  }

  static bool settled(const Slots& slots) {
    bool all_ready = !slots.empty();
    for (const auto& [slot, group] : slots) {
      if (group.state == GroupState::kFailed) return true;
      all_ready = all_ready && group.state == GroupState::kReady;
    }
    return all_ready;
  }

  static void count(const AwaitGroups& request, const Group& group, GroupStatuses& reply) {
    for (const auto& sample : group.samples) {
      for (const core::Version version : sample.versions) {
        const std::uint64_t age = request.update - std::min(request.update, version / 2);
        if (age < reply.staleness.size()) ++reply.staleness[age];
      }
    }
  }

  void measure(std::uint64_t update, const Group& group) {
    for (const auto& sample : group.samples) {
      lengths.push_back(sample.tokens.size());
      for (const core::Version version : sample.versions) {
        EXPECT_GE(version, group.version_min);
        EXPECT_LE(version / 2, update);
        ++ages[update - version / 2];
        ++tokens;
      }
    }
  }

  RoleContext context_;
  int commits_full_ = 0;  // so far
  const Script& script_;
  Events& events_;
  async::Notifier changed_;
  std::map<std::uint64_t, Slots> groups_;
  std::uint64_t prompts_ = 0;
};

}  // namespace troupe::actors::testing
