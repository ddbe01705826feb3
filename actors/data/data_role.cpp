#include "actors/data/data_role.hpp"

#include "actors/data/book_amounts.hpp"
#include "actors/data/group_experience.hpp"
#include "actors/data/group_statuses.hpp"
#include "actors/limits.hpp"
#include "runtime/core/find_value.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/core/rng.hpp"

namespace troupe::actors {

using core::ErrorCode;

DataRole::DataRole(RoleContext context,
                   DataRoleOptions options,
                   std::unique_ptr<PromptSource> prompts,
                   std::unique_ptr<PromptSource> evaluation,
                   std::unique_ptr<GroupSink> sink)
    : context_(std::move(context)),
      options_(std::move(options)),
      prompts_(std::move(prompts)),
      evaluation_(std::move(evaluation)),
      sink_(std::move(sink)),
      book_(options_.samples, options_.scoring.frozen(), options_.filter),
      evaluation_book_(options_.samples, false),
      committed_(state_of(book_)),
      sets_(options_.rewards, options_.reward_formula, options_.held_out),
      changed_(*context_.timers),
      replays_(*context_.timers),
      commits_(*context_.timers),
      scoring_(
          context_,
          options_.scoring,
          [this](const BookGroup& group) { return prompt_of(group); },
          changed_),
      committed_updates_(options_.log.found.first_update),
      log_(context_, std::move(options_.log), options_.scoring.note) {
  TROUPE_CHECK(sets_.restore(options_.earlier_sets).has_value(),
               "the reward sets of an earlier life were in order there");
  book_.begin_prompts_at(options_.first_prompt);
  committed_ = state_of(book_);
  if (!log_.kept()) return;
  book_.when_changed(&log_);
  evaluation_book_.when_changed(&log_);
}

TicketBook& DataRole::book_of(std::uint64_t update) {
  return experience::is_evaluation(update) ? evaluation_book_ : book_;
}

RewardSetPtr DataRole::rewards_for(std::uint64_t update, std::uint32_t slot) const {
  return experience::is_evaluation(update) ? sets_.held_out(slot) : sets_.for_update(update);
}

// The run goes on without them: what only an evaluation reads must not end it.
void DataRole::leave_out_hopeless(std::uint64_t update) {
  if (!experience::is_evaluation(update)) return;
  std::vector<const BookGroup*> hopeless;
  for (const BookGroup* const group : evaluation_book_.groups_of(update)) {
    const auto error =
        RewardSets::is_held_out(*group->rewards) ? scoring_.hopeless({group}) : std::nullopt;
    if (!error) continue;
    evaluation_book_.fail(group->ticket, FailureKind::kRewardGone, error->message);
    hopeless.push_back(group);
  }
  for (const BookGroup* const group : hopeless)
    scoring_.release(*group);
  if (!hopeless.empty()) changed_.notify_all();
}

core::Result<const Prompt*> DataRole::prompt_of(const BookGroup& group) {
  if (const Prompt* const open = core::find_value(open_prompts_, group.ticket)) return open;
  TROUPE_TRY_ASSIGN(prompt, source_of(group.ticket).at(group.prompt));
  return &open_prompts_.emplace(group.ticket, std::move(prompt)).first->second;
}

PromptSource& DataRole::source_of(const experience::Ticket& ticket) const {
  return ticket.kind() == experience::TicketKind::kEvaluation ? *evaluation_ : *prompts_;
}

core::Result<void> DataRole::check_prompts_left(std::uint64_t update, std::uint64_t wanted) const {
  if (options_.episodes == 0 || experience::is_evaluation(update)) return {};
  return book_.prompts().check_left(prompts_->size() * options_.episodes, update, wanted);
}

async::task<core::Result<Tickets>> DataRole::on(IssueTickets request) {
  const bool evaluation = experience::is_evaluation(request.update);
  if (request.groups == 0 || (evaluation && evaluation_ == nullptr)) {
    co_return core::fail(ErrorCode::kInvalidArgument, "tickets asked for in a way that has none");
  }
  if (book_of(request.update).committed(request.update)) {
    co_return core::fail(ErrorCode::kInvalidArgument,
                         "update " + std::to_string(request.update + 1) + " is committed already");
  }
  TROUPE_CO_TRY(co_await replay_log(request.update));
  if (book_of(request.update).groups_of(request.update).empty()) {
    TROUPE_CO_TRY(check_prompts_left(request.update, request.groups));
    if (evaluation) begin_evaluation(request.update);
  }
  const TicketBook::Order order{request.update, request.groups, request.samples,
                                request.version_min};
  const TicketBook::SetOfSlot set_of = [&](std::uint32_t slot) {
    return rewards_for(request.update, slot);
  };
  Tickets reply{book_of(request.update).issue(order, set_of)};
  // The others have their samples, or failed; AwaitGroups tells of them.
  std::erase_if(reply.tickets, [&](const experience::Ticket& ticket) {
    return book_of(request.update).find(ticket)->state != GroupState::kIssued;
  });
  changed_.notify_all();
  TROUPE_CO_TRY(add_rows(reply));
  co_return reply;
}

// Which prompts the tickets are of.
core::Result<void> DataRole::add_rows(Tickets& reply) {
  for (const experience::Ticket& ticket : reply.tickets) {
    const BookGroup* const group = book_of(ticket.update).find(ticket);
    TROUPE_TRY_ASSIGN(prompt, prompt_of(*group));
    reply.rows.push_back(prompt->row);
    reply.prompts = source_of(ticket).size();
  }
  return {};
}

// Issues all of these slots again, or none.
async::task<core::Result<Tickets>> DataRole::on(ReissueTickets request) {
  for (const experience::Ticket& ticket : request.tickets) {
    TROUPE_CO_TRY(book_of(ticket.update).may_reissue(ticket));
  }
  if (!request.tickets.empty()) {
    TROUPE_CO_TRY(check_prompts_left(request.tickets[0].update, request.tickets.size()));
  }
  Tickets reply;
  for (const experience::Ticket& ticket : request.tickets) {
    const RewardSetPtr rewards = rewards_for(ticket.update, ticket.slot);
    TROUPE_CO_TRY_ASSIGN(fresh, book_of(ticket.update).reissue(ticket, rewards));
    open_prompts_.erase(ticket);
    reply.tickets.push_back(fresh);
  }
  changed_.notify_all();
  TROUPE_CO_TRY(add_rows(reply));
  co_return reply;
}

core::Result<DataRole::OpenGroup> DataRole::open_group(const experience::Ticket& ticket) {
  const BookGroup* const group = book_of(ticket.update).find(ticket);
  if (group == nullptr) {
    return core::fail(ErrorCode::kNotFound, name_of(ticket) + " is not open");
  }
  TROUPE_TRY_ASSIGN(prompt, prompt_of(*group));
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

async::task<core::Result<Ack>> DataRole::on(PutGroup request) {
  TicketBook& book = book_of(request.ticket.update);
  if (request.too_long > 0) {
    fail_too_long(request);
    co_return Ack{};
  }
  scoring_.tell_modules("the environment", request.modules);
  TROUPE_CO_TRY(check_delivery(request));
  if (refuse_long_rows(request)) co_return Ack{};
  // False: the group came before, or its slot was reissued.
  TROUPE_CO_TRY_ASSIGN(taken, book.put_samples(request.ticket, std::move(request.samples),
                                               request.cut, std::move(request.prompt)));
  if (!taken) co_return Ack{};
  changed_.notify_all();
  scoring_.begin(book, request.ticket);
  co_return Ack{};
}

async::task<core::Result<Ack>> DataRole::on(SetAside request) {
  TicketBook& book = book_of(request.ticket.update);
  const BookGroup* const group = book.find(request.ticket);
  if (group == nullptr) co_return Ack{};
  TROUPE_CO_TRY_ASSIGN(prompt, prompt_of(*group));
  const std::string cause = with_row(request.cause, *prompt);
  if (book.fail(request.ticket, FailureKind::kSetAside, cause)) changed_.notify_all();
  co_return Ack{};
}

async::task<core::Result<GroupStatuses>> DataRole::on(AwaitGroups request) {
  TicketBook& book = book_of(request.update);
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
  if (complete) TROUPE_CO_TRY(co_await log_.durable());
  GroupStatuses statuses = statuses_of(book.groups_of(request.update), request.starts);
  for (GroupStatus& status : statuses.groups) {
    if (status.state != GroupState::kFailed) continue;
    TROUPE_CO_TRY_ASSIGN(prompt, prompt_of(*book.find(status.ticket)));
    status.row = prompt->row;
    statuses.prompts = source_of(status.ticket).size();
  }
  co_return statuses;
}

async::task<core::Result<ExperiencePage>> DataRole::on(FetchExperience request) {
  const auto groups = book_.groups_of(request.update);
  ExperiencePage page;
  std::uint64_t bytes = 0;
  for (const std::uint32_t slot : request.slots) {
    if (slot >= groups.size()) break;
    TROUPE_CO_TRY_ASSIGN(prompt, prompt_of(*groups[slot]));
    experience::Group group = experience_of(*groups[slot], *prompt);
    bytes += bytes_of(group);
    if (!page.groups.empty() && bytes > limits::kPage_bytes) break;
    page.groups.push_back(std::move(group));
  }
  if (page.groups.empty() || !book_.ready(request.update)) {
    co_return core::fail(
        ErrorCode::kInvalidArgument,
        experience::name_of_update(request.update) + " has no experience in the slots asked for");
  }
  co_return page;
}

async::task<core::Result<Ack>> DataRole::on(CommitUpdate request) {
  const auto turn = co_await commits_.take();
  TicketBook& book = book_of(request.update);
  if (book.committed(request.update)) co_return Ack{};
  const bool held_out = experience::is_evaluation(request.update);
  if (held_out ? !book.settled(request.update) : !book.ready(request.update)) {
    co_return core::fail(ErrorCode::kInvalidArgument, "a commit of groups that are not ready");
  }
  auto reading = read_back(request.update);
  const std::shared_ptr<const TicketBook> logged = co_await std::move(reading);
  // Held-out problems that could not be scored are left out.
  std::vector<CommittedGroup> groups;
  for (const BookGroup* group : (logged ? *logged : book).groups_of(request.update)) {
    if (held_out && group->state == GroupState::kFailed) continue;
    TROUPE_CO_TRY_ASSIGN(prompt, prompt_of(*group));
    groups.push_back({group, prompt});
  }
  TROUPE_CO_TRY(sink_->commit(request.update, request.after_step, groups));
  for (const BookGroup* group : book.groups_of(request.update))
    open_prompts_.erase(group->ticket);
  TROUPE_CO_TRY(book.commit(request.update, held_out));
  if (!held_out) {
    committed_ = state_of(book_);
    committed_updates_ = request.update + 1;
  }
  sets_.forget_before(book_.oldest_update());
  changed_.notify_all();
  co_return Ack{};
}

async::task<core::Result<Ack>> DataRole::on(SaveState request) {
  // What is open is in the log. If that cannot be written now, it is sampled again.
  static_cast<void>(co_await log_.durable());
  DataState state = committed_;
  state.reward_sets = sets_.added();
  TROUPE_CO_TRY(write_state(state, request.folder, *options_.disk));
  co_return Ack{};
}

async::task<core::Result<Loaded>> DataRole::on(LoadState request) {
  const Loaded loaded{request.updates, request.updates};
  if (request.folder.empty()) co_return loaded;
  TROUPE_CO_TRY_ASSIGN(state, read_state(request.folder, *options_.disk));
  if (options_.first_prompt > 0) state.open.clear();  // they have the prompts that are passed over
  std::vector<BookGroup> open;
  for (SavedTicket& saved : state.open) {
    BookGroup& group = open.emplace_back(std::move(saved));
    group.rewards = rewards_for(group.ticket.update, group.ticket.slot);
  }
  TROUPE_CO_TRY(book_.restore(std::move(state.prompts), std::move(open)));
  book_.begin_prompts_at(options_.first_prompt);
  committed_ = state_of(book_);
  co_return loaded;
}

async::task<core::Result<Ack>> DataRole::on(SetRewards request) {
  TROUPE_CO_TRY_ASSIGN(added, sets_.add(request));
  if (added) log_.on_event(SetChanged{request, committed_updates_});
  for (const std::string& name : request.lost) {
    book_.lose(name, request.set);
    evaluation_book_.lose(name, request.set);
  }
  changed_.notify_all();
  TROUPE_CO_TRY(co_await logged());
  co_return Ack{};
}

// True when an open group needs the reward, or the next update, whose tickets may still be issued
// with the old set.
bool DataRole::needed(const std::string& reward) const {
  return book_.waits_for(reward) || evaluation_book_.waits_for(reward) ||
         sets_.for_update(book_.next_update())->member(reward).has_value();
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
      TROUPE_CO_TRY(co_await logged());
      co_return Ack{};
    }
  } while (co_await changed_.wait(deadline));
  co_return core::fail(ErrorCode::kDeadline, "groups still wait for reward " + request.name);
}

std::optional<core::Error> DataRole::hopeless(std::uint64_t update) const {
  const TicketBook& book = experience::is_evaluation(update) ? evaluation_book_ : book_;
  return scoring_.hopeless(book.groups_of(update));
}

// Fails a group whose samples the generator did not send because they are too long. The slot is
// reissued with another prompt.
void DataRole::fail_too_long(const PutGroup& request) {
  const std::string cause =
      "its " + std::to_string(request.too_long) + " samples are longer than the " +
      std::to_string(core::limits::kGroup_bytes_max) +
      " bytes of a group; ask for shorter responses or fewer samples a prompt "
      "(--rollout.max_new_tokens, --rollout.n_samples_per_prompt)";
  if (!book_of(request.ticket.update).fail(request.ticket, FailureKind::kTooLong, cause)) return;
  too_long_samples_ += request.too_long;
  changed_.notify_all();
}

// The same for a group with a row that no micro-batch holds: episodes grow while they run.
bool DataRole::refuse_long_rows(const PutGroup& request) {
  const BookGroup* const group = book_.find(request.ticket);
  if (group == nullptr || group->state != GroupState::kIssued || options_.row_tokens_max == 0)
    return false;
  const std::uint64_t longest = longest_row(request.samples);
  std::uint64_t prompt = request.prompt.size();
  if (const auto own = prompt_of(*group); own && prompt == 0) prompt = (*own)->tokens.size();
  if (prompt + longest <= options_.row_tokens_max) return false;
  const std::string cause = row_too_long(prompt + longest, options_.row_tokens_max);
  if (book_.fail(request.ticket, FailureKind::kTooLong, cause)) changed_.notify_all();
  return true;
}

wire::Amounts DataRole::amounts() const {
  wire::Amounts amounts;
  const auto add = [&](std::string name, std::uint64_t value) {
    amounts.emplace_back(std::move(name), static_cast<double>(value));
  };
  add_book_amounts(book_, evaluation_book_, amounts);
  add("too_long_samples", too_long_samples_);
  add("scorer_retries", scoring_.retries());
  add("scorers_away", scoring_.away());
  add("logged_events", log_.written());
  add("reward_set", sets_.newest()->number);
  return amounts;
}

}  // namespace troupe::actors
