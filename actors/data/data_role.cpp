#include "actors/data/data_role.hpp"

#include "actors/data/book_amounts.hpp"
#include "actors/data/group_experience.hpp"
#include "actors/data/group_statuses.hpp"
#include "actors/protocol/limits.hpp"
#include "runtime/core/find_value.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/core/rng.hpp"

#include <algorithm>

namespace troupe::actors::data {

DataRole::DataRole(RoleContext context,
                   DataRoleOptions options,
                   std::unique_ptr<PromptSource> prompts,
                   std::unique_ptr<PromptSource> evaluation,
                   std::unique_ptr<GroupSink> sink)
    : context_(std::move(context)),
      options_(std::move(options)),
      prompts_(std::move(prompts), std::move(evaluation)),
      sink_(std::move(sink)),
      books_{{options_.samples, options_.scoring.frozen(), options_.filter},
             {options_.samples, false}},
      committed_(state_of(books_.train)),
      sets_(options_.rewards, options_.reward_formula, options_.held_out),
      changed_(*context_.timers),
      commits_(*context_.timers),
      scoring_(
          context_,
          options_.scoring,
          [this](const BookGroup& group) { return prompts_.of(group); },
          changed_),
      intake_(options_.row_tokens_max, books_, prompts_, scoring_, changed_),
      committed_updates_(options_.log.found.first_update),
      history_(context_,
               std::move(options_.log),
               options_.evaluation_settings,
               options_.scoring.note,
               books_,
               sets_,
               scoring_) {
  TROUPE_CHECK(sets_.restore(options_.earlier_sets).has_value(),
               "the reward sets of an earlier life were in order there");
  books_.train.begin_prompts_at(options_.first_prompt);
  committed_ = state_of(books_.train);
}

RewardSetPtr DataRole::rewards_for(std::uint64_t update, std::uint32_t slot) const {
  return experience::is_evaluation(update) ? sets_.held_out(slot) : sets_.for_update(update);
}

// The run goes on without them: what only an evaluation reads must not end it.
void DataRole::leave_out_hopeless(std::uint64_t update) {
  if (!experience::is_evaluation(update)) return;
  std::vector<const BookGroup*> hopeless;
  for (const BookGroup* const group : books_.held_out.groups_of(update)) {
    const auto error =
        RewardSets::is_held_out(*group->rewards) ? scoring_.hopeless({group}) : std::nullopt;
    if (!error) continue;
    books_.held_out.fail(group->ticket, FailureKind::kRewardGone, error->message);
    hopeless.push_back(group);
  }
  for (const BookGroup* const group : hopeless)
    scoring_.release(*group);
  if (!hopeless.empty()) changed_.notify_all();
}

core::Result<void> DataRole::check_prompts_left(std::uint64_t update, std::uint64_t wanted) const {
  if (options_.episodes == 0 || experience::is_evaluation(update)) return {};
  return books_.train.prompts().check_left(prompts_.epoch_size() * options_.episodes, update,
                                           wanted);
}

async::task<core::Result<Tickets>> DataRole::on(IssueTickets request) {
  const bool evaluation = experience::is_evaluation(request.update);
  if (request.groups == 0 || (evaluation && !prompts_.has_held_out())) {
    co_return core::fail(ErrorCode::kInvalidArgument, "no tickets exist for what was asked");
  }
  if (books_.of(request.update).committed(request.update)) {
    co_return core::fail(ErrorCode::kInvalidArgument,
                         "update " + std::to_string(request.update + 1) + " is committed already");
  }
  TROUPE_CO_TRY(co_await history_.replay(request.update));
  if (books_.of(request.update).groups_of(request.update).empty()) {
    TROUPE_CO_TRY(check_prompts_left(request.update, request.groups));
    if (evaluation) history_.begin_evaluation(request.update);
  }
  const TicketBook::Order order{request.update, request.groups, request.samples,
                                request.version_min};
  const TicketBook::SetOfSlot set_of = [&](std::uint32_t slot) {
    return rewards_for(request.update, slot);
  };
  Tickets reply{books_.of(request.update).issue(order, set_of)};
  // The others have their samples, or failed; AwaitGroups tells of them.
  std::erase_if(reply.tickets, [&](const experience::Ticket& ticket) {
    return books_.of(request.update).find(ticket)->state != GroupState::kIssued;
  });
  changed_.notify_all();
  TROUPE_CO_TRY(add_rows(reply));
  co_return reply;
}

// Which prompts the tickets are of.
core::Result<void> DataRole::add_rows(Tickets& reply) {
  for (const experience::Ticket& ticket : reply.tickets) {
    const BookGroup* const group = books_.of(ticket.update).find(ticket);
    TROUPE_TRY_ASSIGN(prompt, prompts_.of(*group));
    reply.rows.push_back(prompt->row);
    reply.prompts = prompts_.source_of(ticket).size();
  }
  return {};
}

// Issues all of these slots again, or none.
async::task<core::Result<Tickets>> DataRole::on(ReissueTickets request) {
  for (const experience::Ticket& ticket : request.tickets) {
    TROUPE_CO_TRY(books_.of(ticket.update).may_reissue(ticket));
  }
  if (!request.tickets.empty()) {
    TROUPE_CO_TRY(check_prompts_left(request.tickets[0].update, request.tickets.size()));
  }
  Tickets reply;
  for (const experience::Ticket& ticket : request.tickets) {
    const RewardSetPtr rewards = rewards_for(ticket.update, ticket.slot);
    TROUPE_CO_TRY_ASSIGN(fresh, books_.of(ticket.update).reissue(ticket, rewards));
    prompts_.forget(ticket);
    reply.tickets.push_back(fresh);
  }
  changed_.notify_all();
  TROUPE_CO_TRY(add_rows(reply));
  co_return reply;
}

core::Result<DataRole::OpenGroup> DataRole::open_group(const experience::Ticket& ticket) {
  const BookGroup* const group = books_.of(ticket.update).find(ticket);
  if (group == nullptr) {
    return core::fail(ErrorCode::kNotFound, name_of(ticket) + " is not open");
  }
  TROUPE_TRY_ASSIGN(prompt, prompts_.of(*group));
  return OpenGroup{prompt, group->wanted,
                   core::derive_seed(options_.seed, ticket.update, ticket.slot, ticket.attempt)};
}

async::task<core::Result<PromptTasks>> DataRole::on(FetchPrompts request) {
  PromptTasks reply;
  for (const experience::Ticket& ticket : request.tickets) {
    TROUPE_CO_TRY_ASSIGN(open, open_group(ticket));
    reply.tasks.push_back({ticket, open.prompt->row, open.prompt->tokens, open.samples, open.seed});
  }
  co_return reply;
}

async::task<core::Result<EpisodeTasks>> DataRole::on(FetchEpisodes request) {
  EpisodeTasks reply;
  for (const experience::Ticket& ticket : request.tickets) {
    TROUPE_CO_TRY_ASSIGN(open, open_group(ticket));
    const Prompt& prompt = *open.prompt;
    reply.tasks.push_back({ticket, prompt.row, open.samples, open.seed, prompt.tokens, prompt.text,
                           prompt.messages, prompt.label, prompt.columns});
  }
  co_return reply;
}

async::task<core::Result<GroupStatuses>> DataRole::on(AwaitGroups request) {
  TicketBook& book = books_.of(request.update);
  const async::Deadline deadline = async::Deadline::after(*context_.timers, context_.call_deadline);
  while (!book.ready(request.update) && !book.any_failed(request.update)) {
    if (book.groups_of(request.update).empty()) {
      co_return core::fail(ErrorCode::kInvalidArgument,
                           "update " + std::to_string(request.update + 1) + " has no tickets");
    }
    leave_out_hopeless(request.update);
    if (book.any_failed(request.update) || hopeless(request.update)) break;
    if (options_.watched) options_.watched(counts_of(book.groups_of(request.update)));
    if (!co_await changed_.wait(deadline)) {
      co_return core::fail(ErrorCode::kDeadline, "the groups of update " +
                                                     std::to_string(request.update + 1) +
                                                     " still wait for samples or scores");
    }
  }
  leave_out_hopeless(request.update);
  if (auto error = hopeless(request.update)) co_return core::fail(std::move(*error));
  // Whoever learns from the groups now can learn from them again; of an evaluation, some may have
  // failed.
  const bool complete = experience::is_evaluation(request.update) ? book.settled(request.update)
                                                                  : book.ready(request.update);
  if (complete) TROUPE_CO_TRY(co_await history_.log().durable());
  GroupStatuses statuses = statuses_of(book.groups_of(request.update), request.starts);
  for (GroupStatus& status : statuses.groups) {
    if (status.state != GroupState::kFailed) continue;
    TROUPE_CO_TRY_ASSIGN(prompt, prompts_.of(*book.find(status.ticket)));
    status.row = prompt->row;
    statuses.prompts = prompts_.source_of(status.ticket).size();
  }
  co_return statuses;
}

async::task<core::Result<ExperiencePage>> DataRole::on(FetchExperience request) {
  const auto groups = books_.train.groups_of(request.update);
  ExperiencePage page;
  std::uint64_t bytes = 0;
  for (const std::uint32_t slot : request.slots) {
    if (slot >= groups.size()) break;
    TROUPE_CO_TRY_ASSIGN(prompt, prompts_.of(*groups[slot]));
    experience::Group group = experience_of(*groups[slot], *prompt);
    bytes += bytes_of(group);
    if (!page.groups.empty() && bytes > actors::limits::kPage_bytes) break;
    page.groups.push_back(std::move(group));
  }
  if (page.groups.empty() || !books_.train.ready(request.update)) {
    co_return core::fail(
        ErrorCode::kInvalidArgument,
        experience::name_of_update(request.update) + " has no experience in the slots asked for");
  }
  co_return page;
}

async::task<core::Result<Ack>> DataRole::on(CommitUpdate request) {
  const auto turn = co_await commits_.take();
  TicketBook& book = books_.of(request.update);
  if (book.committed(request.update)) co_return Ack{};
  const bool held_out = experience::is_evaluation(request.update);
  if (held_out ? !book.settled(request.update) : !book.ready(request.update)) {
    co_return core::fail(ErrorCode::kInvalidArgument, "a commit names groups that are not ready");
  }
  auto reading = history_.read_back(request.update);
  const std::shared_ptr<const TicketBook> logged = co_await std::move(reading);
  // Held-out problems that could not be scored are left out.
  std::vector<CommittedGroup> groups;
  for (const BookGroup* group : (logged ? *logged : book).groups_of(request.update)) {
    if (held_out && group->state == GroupState::kFailed) continue;
    TROUPE_CO_TRY_ASSIGN(prompt, prompts_.of(*group));
    groups.push_back({group, prompt});
  }
  TROUPE_CO_TRY(sink_->commit(request.update, request.after_step, groups));
  for (const BookGroup* group : book.groups_of(request.update))
    prompts_.forget(group->ticket);
  TROUPE_CO_TRY(book.commit(request.update, held_out));
  if (!held_out) {
    committed_ = state_of(books_.train);
    committed_updates_ = request.update + 1;
  }
  sets_.forget_before(books_.train.oldest_update());
  changed_.notify_all();
  co_return Ack{};
}

async::task<core::Result<Ack>> DataRole::on(SaveState request) {
  // What is open is in the log. If that cannot be written now, it is sampled again.
  static_cast<void>(co_await history_.log().durable());
  DataState state = committed_;
  state.reward_sets = sets_.added();
  TROUPE_CO_TRY(write_state(state, request.folder, *options_.disk));
  co_return Ack{};
}

async::task<core::Result<Loaded>> DataRole::on(LoadState request) {
  const Loaded loaded{request.updates, request.updates};
  if (request.folder.empty()) co_return loaded;
  TROUPE_CO_TRY_ASSIGN(state, read_state(request.folder, *options_.disk));
  // A checkpoint that was made before the return has open tickets with prompts that are passed
  // over.
  const bool passed = std::ranges::any_of(state.open, [this](const SavedTicket& saved) {
    return saved.prompt < options_.first_prompt;
  });
  if (passed) state.open.clear();
  std::vector<BookGroup> open;
  for (SavedTicket& saved : state.open) {
    BookGroup& group = open.emplace_back(std::move(saved));
    group.rewards = rewards_for(group.ticket.update, group.ticket.slot);
  }
  TROUPE_CO_TRY(books_.train.restore(std::move(state.prompts), std::move(open)));
  books_.train.begin_prompts_at(options_.first_prompt);
  committed_ = state_of(books_.train);
  co_return loaded;
}

async::task<core::Result<Ack>> DataRole::on(SetRewards request) {
  TROUPE_CO_TRY_ASSIGN(added, sets_.add(request));
  if (added) history_.log().on_event(SetChanged{request, committed_updates_});
  for (const std::string& name : request.lost) {
    books_.train.lose(name, request.set);
    books_.held_out.lose(name, request.set);
  }
  changed_.notify_all();
  TROUPE_CO_TRY(co_await history_.logged());
  co_return Ack{};
}

// True when an open group needs the reward, or the next update, whose tickets may still be issued
// with the old set.
bool DataRole::needed(const std::string& reward) const {
  return books_.waits_for(reward) ||
         sets_.for_update(books_.train.next_update())->member(reward).has_value();
}

async::task<core::Result<Ack>> DataRole::on(DrainReward request) {
  const async::Deadline deadline = async::Deadline::after(*context_.timers, context_.call_deadline);
  do {
    if (sets_.newest()->member(request.name)) {
      co_return core::fail(ErrorCode::kInvalidArgument,
                           "reward " + request.name + " is in reward set " +
                               std::to_string(sets_.newest()->number) + ", the newest",
                           "it cannot be drained");
    }
    if (!needed(request.name)) {
      // From now on a reissued slot gets a set without it.
      sets_.retire(request.name);
      // The reward goes when this is answered: its scores must be on disk by then.
      TROUPE_CO_TRY(co_await history_.logged());
      co_return Ack{};
    }
  } while (co_await changed_.wait(deadline));
  co_return core::fail(ErrorCode::kDeadline, "groups still wait for reward " + request.name);
}

std::optional<core::Error> DataRole::hopeless(std::uint64_t update) const {
  return scoring_.hopeless(books_.of(update).groups_of(update));
}

wire::Amounts DataRole::amounts() const {
  wire::Amounts amounts;
  const auto add = [&](std::string name, std::uint64_t value) {
    amounts.emplace_back(std::move(name), static_cast<double>(value));
  };
  add_book_amounts(books_.train, books_.held_out, amounts);
  add("too_long_samples", intake_.too_long_samples());
  add("scorer_retries", scoring_.retries());
  add("scorers_away", scoring_.away());
  add("logged_events", history_.log().written());
  add("reward_set", sets_.newest()->number);
  return amounts;
}

}  // namespace troupe::actors::data
