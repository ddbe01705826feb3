// The data role: hands out tickets and prompts, takes finished groups from the generators, has them
// scored, and serves experience to the policy. The ticket book decides; this shell moves messages.
// Runs on its role's strand. Bounds: the groups of the open updates; pages of one frame.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/data/group_sink.hpp"
#include "actors/data/prompt_source.hpp"
#include "actors/data/ticket_book.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/role_shell.hpp"

namespace troupe::actors {

// Updates from this number on are evaluations: their prompts are the held-out ones, in order.
inline constexpr std::uint64_t kFirstEvaluation = std::uint64_t{1} << 63;

struct DataRoleOptions {
  std::int32_t samples = 1;  // of a training group
  std::uint64_t seed = 0;
  float temperature = 1;       // at which the reference scores
  bool with_reference = false;  // training groups need reference log-probs
  std::string reward_peer = "reward/0";
  std::string reference_peer = "reference/0";
};

class DataRole {
 public:
  DataRole(RoleContext context, DataRoleOptions options, std::unique_ptr<PromptSource> prompts,
           std::unique_ptr<PromptSource> evaluation, std::unique_ptr<GroupSink> sink);

  async::task<core::Result<Tickets>> on(IssueTickets request);
  async::task<core::Result<Tickets>> on(ReissueTickets request);
  async::task<core::Result<PromptTasks>> on(FetchPrompts request);
  async::task<core::Result<Ack>> on(PutGroup request);
  async::task<core::Result<GroupStatuses>> on(AwaitGroups request);
  async::task<core::Result<ExperiencePage>> on(FetchExperience request);
  async::task<core::Result<Ack>> on(CommitUpdate request);
  async::task<core::Result<Ack>> on(SaveState request);
  async::task<core::Result<Ack>> on(LoadState request);

 private:
  TicketBook& book_of(std::uint64_t update);
  core::Result<const Prompt*> prompt_of(const BookGroup& group);
  async::task<core::Result<void>> score(core::Ticket ticket);
  async::task<core::Result<void>> reference(core::Ticket ticket);

  RoleContext context_;
  DataRoleOptions options_;
  std::unique_ptr<PromptSource> prompts_;
  std::unique_ptr<PromptSource> evaluation_;
  std::unique_ptr<GroupSink> sink_;
  TicketBook book_;
  TicketBook evaluation_book_;
  std::map<core::Ticket, Prompt> open_prompts_;
  async::Notifier changed_;  // at each change of a group
};

}  // namespace troupe::actors
