// The environment role runs the episodes of its tickets, as a generator samples theirs: it fetches
// what they begin with from the data role, asks the controller for the policy's turns, and delivers
// each group to the data role once its last episode has ended. An episode that fails costs its
// sample; a group with too few episodes left is set aside, and its slot gets another prompt. One
// that lost what ran it is run again from its beginning, with the same seeds, unless it is the
// likely cause (kEpisodeLosses_max).
//
// Runs on its strand; texts are rendered and read on the device queue. Bounds: `episodes_max` at a
// time, the others wait; EpisodeSettings for each; one delivery in flight per group. Sessions from
// outside belong to the episodes that have waited longest.
#pragma once

#include "actors/environment/agent_program.hpp"
#include "actors/environment/session_episodes.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/wire/role_report.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors::environment {

struct EnvironmentParts {
  std::shared_ptr<const dialects::ServedModel> model;
  // One of the two: what answers the policy's turns, or a program that makes its own calls.
  // Neither: outside programs open sessions, at `address` or where the owner of `sessions`
  // serves them.
  std::unique_ptr<Environment> environment;
  std::unique_ptr<AgentProgram> program;
  std::optional<SessionAddress> address;
  std::shared_ptr<EpisodeSessions> sessions;  // null: the role makes its own
  EpisodeSettings settings;
#define KEYS "actors/environment/environment_keys.def"
#define PART role
#include "runtime/config/fill.def"
  std::string data_peer = "data/0";
  std::function<void(const std::string&)> note;  // tells the user
};

class EnvironmentRole {
 public:
  EnvironmentRole(RoleContext context, EnvironmentParts parts);

  // A repeated request joins the groups that are under way. One that was delivered already is run
  // again from the same seed, and the data role drops it.
  async::task<core::Result<Generated>> on(Generate request);
  // Ends the groups' unfinished episodes; ignores groups that are gone already.
  async::task<core::Result<Ack>> on(CutGroups request);

  std::string state() const;
  wire::Amounts amounts() const;

 private:
  using Waiter = async::Oneshot<core::Result<Generated>>;
  struct Group {
    SamplingSpec sampling;
    core::Version version_min = 0;
    std::shared_ptr<const EpisodeTask> task;
    std::vector<std::optional<EpisodeEnd>> ends;  // by episode
    std::string cause;                            // why the last failed episode failed
    async::Scope* scope = nullptr;                // of its episodes, while they run
    bool cut = false;
    std::vector<std::shared_ptr<Waiter>> waiters;
  };
  using GroupPtr = std::shared_ptr<Group>;

  async::task<void> run_group(experience::Ticket ticket, GroupPtr group);
  async::task<core::Result<Generated>> sample(experience::Ticket ticket, GroupPtr group);
  static async::task<core::Result<void>> episodes(async::Scope& scope,
                                                  EnvironmentRole* self,
                                                  GroupPtr group);
  async::task<void> one(GroupPtr group, std::uint32_t index);
  async::task<core::Result<EpisodeEnd>> run_once(EpisodeOrder order, Loss* loss);
  async::task<core::Result<Generated>> deliver(experience::Ticket ticket, GroupPtr group);
  async::task<core::Result<Generated>> set_aside(experience::Ticket ticket, GroupPtr group);
  void count(const EpisodeEnd& end);

  RoleContext context_;
  EnvironmentParts parts_;
  SessionEpisodes sessions_;
  std::map<experience::Ticket, GroupPtr> groups_;
  async::Notifier free_;  // an episode has ended
  std::size_t running_ = 0;
  std::uint64_t episodes_ = 0, failed_ = 0, again_ = 0, turns_ = 0, forked_by_template_ = 0,
                cut_by_limit_ = 0;
  std::uint64_t restricted_ = 0;  // tokens drawn under a grammar or truncation
};

}  // namespace troupe::actors::environment
