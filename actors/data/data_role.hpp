// The data role hands out tickets and prompts, takes finished groups from the generators, has them
// scored by every reward of their set, and serves experience to the policy. TicketBook and
// RewardSets make the decisions; this class answers messages. Runs on its strand. Set 0,
// the rewards that the run started with, scores all evaluations, so that accuracy stays comparable.
// Bounds: the groups of the open updates; pages of kPage_bytes; kRewardCalls_max calls to one
// reward at a time; the patience with a scorer that is away, after which AwaitGroups fails.
#pragma once

#include "actors/data/book_history.hpp"
#include "actors/data/data_state.hpp"
#include "actors/data/group_intake.hpp"
#include "actors/data/group_sink.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/messages_calls.hpp"
#include "actors/protocol/messages_rewards.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/wire/role_report.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::actors::data {

struct DataRoleOptions {
  std::int32_t samples = 1;  // of a training group
  std::uint64_t seed = 0;
  std::vector<RewardMember> rewards = {{"reward", "reward/0", 1}};  // set 0
  std::string reward_formula;                                       // of set 0
  std::vector<HeldOutRewards> held_out;  // of the sets of held-out prompts, in their order
  std::vector<SetRewards> earlier_sets;  // of the checkpoint and of the log
  std::uint64_t episodes = 0;            // passes over the prompts; 0 = no end
  std::uint64_t first_prompt = 0;        // positions of prompts before it are passed over
  std::optional<GroupFilter> filter;     // of training groups; none: every group is kept
  // The longest row of a sample, prompt included, that the policy can learn from. 0: any length.
  std::uint64_t row_tokens_max = 0;
  ScoringOptions scoring;
  store::Disk* disk = &store::system_disk();  // where checkpoints are
  GroupLogOptions log;
  // What decides the results of an evaluation: data, samples, temperature. One in the log that
  // began with other settings is made again.
  std::string evaluation_settings;
  // Called on the role's strand with the progress of the awaited groups, at each change.
  std::function<void(const GroupCounts&)> watched;
};

class DataRole {
 public:
  DataRole(RoleContext context,
           DataRoleOptions options,
           std::unique_ptr<PromptSource> prompts,
           std::unique_ptr<PromptSource> evaluation,
           std::unique_ptr<GroupSink> sink);

  // A repeated request gets the update's present tickets; refused once the update is committed.
  async::task<core::Result<Tickets>> on(IssueTickets request);
  // A repeated request gets the tickets that replaced these.
  async::task<core::Result<Tickets>> on(ReissueTickets request);
  // A repeated request gets the same prompts and seeds.
  async::task<core::Result<PromptTasks>> on(FetchPrompts request);
  // As FetchPrompts, for environments.
  async::task<core::Result<EpisodeTasks>> on(FetchEpisodes request);
  // Acknowledges, counts and drops a group that came before or whose slot was issued again.
  async::task<core::Result<Ack>> on(PutGroup request) {
    co_return intake_.take(std::move(request));
  }
  // Acknowledges a repeated request; the group has failed already.
  async::task<core::Result<Ack>> on(SetAside request) { co_return intake_.set_aside(request); }
  // Changes nothing: any number of askers may wait.
  async::task<core::Result<GroupStatuses>> on(AwaitGroups request);
  // A repeated request gets the same page; refused once the update is committed.
  async::task<core::Result<ExperiencePage>> on(FetchExperience request);
  // Acknowledges a repeated request and writes nothing.
  async::task<core::Result<Ack>> on(CommitUpdate request);
  // Acknowledges a repeated request, known by the number of the set.
  async::task<core::Result<Ack>> on(SetRewards request);
  // Any number of askers may wait.
  async::task<core::Result<Ack>> on(DrainReward request);
  // Saves the state at the last commit; a resumed run redoes what was issued, replaced or sampled
  // since. Writes again for a repeated request.
  async::task<core::Result<Ack>> on(SaveState request);
  // Loads again for a repeated request; refused once tickets were issued.
  async::task<core::Result<Loaded>> on(LoadState request);

  // Counts for `status`.
  wire::Amounts amounts() const;

 private:
  RewardSetPtr rewards_for(std::uint64_t update, std::uint32_t slot) const;
  // Held-out groups whose own reward was away too long fail, and the others are waited for.
  void leave_out_hopeless(std::uint64_t update);
  core::Result<void> add_rows(Tickets& reply);
  // What an open ticket's samples begin with. Error kNotFound: it is not open.
  struct OpenGroup {
    const Prompt* prompt = nullptr;
    std::int32_t samples = 0;
    std::uint64_t seed = 0;
  };
  core::Result<OpenGroup> open_group(const experience::Ticket& ticket);
  core::Result<void> check_prompts_left(std::uint64_t update, std::uint64_t wanted) const;
  bool needed(const std::string& reward) const;
  // The error of a scorer that the update's groups wait for and that was away too long; else none.
  std::optional<core::Error> hopeless(std::uint64_t update) const;

  RoleContext context_;
  DataRoleOptions options_;
  OpenPrompts prompts_;
  std::unique_ptr<GroupSink> sink_;
  TicketBooks books_;
  DataState committed_;  // as it was at the last commit
  RewardSets sets_;
  async::Notifier changed_;  // notified at each change of a group
  async::Turns commits_;
  GroupScoring scoring_;
  GroupIntake intake_;
  std::uint64_t committed_updates_;  // in all lives of the run
  BookHistory history_;
};

}  // namespace troupe::actors::data
