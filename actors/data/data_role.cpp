// The shell of the data role.
#include "actors/data/data_role.hpp"

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "actors/protocol/ask.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/core/rng.hpp"

namespace troupe::actors {
namespace {

using core::ErrorCode;

std::string name_of(const core::Ticket& ticket) {
  const bool evaluation = ticket.update >= kFirstEvaluation;
  const std::uint64_t number = evaluation ? ticket.update - kFirstEvaluation : ticket.update;
  return (evaluation ? "evaluation " : "update ") + std::to_string(number) + " slot " +
         std::to_string(ticket.slot);
}

std::uint64_t bytes_of(const ExperienceGroup& group) {
  std::uint64_t bytes = 256 + group.prompt.size() * 4;
  for (const auto& sample : group.samples) bytes += 128 + sample.tokens.size() * 20;
  return bytes;
}

ExperienceGroup experience_of(const BookGroup& group, const Prompt& prompt) {
  ExperienceGroup result{group.ticket, prompt.tokens, {}};
  for (const BookSample& sample : group.samples) {
    result.samples.push_back({sample.tokens, sample.behaviour, sample.versions, sample.reference,
                              sample.score.value_or(0.0), sample.finish});
  }
  return result;
}

}  // namespace

DataRole::DataRole(RoleContext context, DataRoleOptions options,
                   std::unique_ptr<PromptSource> prompts, std::unique_ptr<PromptSource> evaluation,
                   std::unique_ptr<GroupSink> sink)
    : context_(std::move(context)),
      options_(std::move(options)),
      prompts_(std::move(prompts)),
      evaluation_(std::move(evaluation)),
      sink_(std::move(sink)),
      book_(options_.samples, options_.with_reference),
      evaluation_book_(options_.samples, false),
      changed_(*context_.timers) {}

TicketBook& DataRole::book_of(std::uint64_t update) {
  return update >= kFirstEvaluation ? evaluation_book_ : book_;
}

core::Result<const Prompt*> DataRole::prompt_of(const BookGroup& group) {
  const auto found = open_prompts_.find(group.ticket);
  if (found != open_prompts_.end()) return &found->second;
  const bool evaluation = group.ticket.update >= kFirstEvaluation;
  auto prompt = evaluation ? evaluation_->at(group.prompt) : prompts_->at(group.prompt);
  if (!prompt) return prompt.failure();
  return &open_prompts_.emplace(group.ticket, std::move(prompt).value()).first->second;
}

async::task<core::Result<Tickets>> DataRole::on(IssueTickets request) {
  if (request.evaluation != (request.update >= kFirstEvaluation) || request.groups == 0 ||
      (request.evaluation && evaluation_ == nullptr)) {
    co_return core::fail(ErrorCode::kInvalidArgument, "tickets asked for in a way that has none");
  }
  // Every evaluation starts from the first held-out prompt again.
  if (request.evaluation) evaluation_book_.set_next_prompt(0);
  Tickets reply{book_of(request.update).issue(request.update, request.groups, request.samples)};
  co_return reply;
}

async::task<core::Result<Tickets>> DataRole::on(ReissueTickets request) {
  Tickets reply;
  for (const core::Ticket& ticket : request.tickets) {
    open_prompts_.erase(ticket);
    TROUPE_CO_TRY_ASSIGN(fresh, book_of(ticket.update).reissue(ticket));
    reply.tickets.push_back(fresh);
  }
  co_return reply;
}

async::task<core::Result<PromptTasks>> DataRole::on(FetchPrompts request) {
  PromptTasks reply;
  for (const core::Ticket& ticket : request.tickets) {
    const BookGroup* group = book_of(ticket.update).find(ticket);
    if (group == nullptr) {
      co_return core::fail(ErrorCode::kNotFound, name_of(ticket) + " is not open");
    }
    TROUPE_CO_TRY_ASSIGN(prompt, prompt_of(*group));
    PromptTask task;
    task.ticket = ticket;
    task.prompt = prompt->row;
    task.tokens = prompt->tokens;
    task.samples = group->wanted;
    task.seed = core::derive_seed(options_.seed, ticket.update, ticket.slot, ticket.attempt);
    reply.tasks.push_back(std::move(task));
  }
  co_return reply;
}

async::task<core::Result<Ack>> DataRole::on(PutGroup request) {
  std::vector<BookSample> samples;
  for (DeliveredSample& delivered : request.samples) {
    if (delivered.behaviour.size() != delivered.tokens.size() ||
        delivered.versions.size() != delivered.tokens.size() || delivered.tokens.empty()) {
      co_return core::fail(ErrorCode::kData,
                           name_of(request.ticket) + ": a sample with uneven token records");
    }
    BookSample sample;
    sample.tokens = std::move(delivered.tokens);
    sample.behaviour = std::move(delivered.behaviour);
    sample.versions = std::move(delivered.versions);
    sample.text = std::move(delivered.text);
    sample.finish = std::move(delivered.finish);
    samples.push_back(std::move(sample));
  }
  // A group that came before, or whose slot was issued again, is acknowledged and dropped.
  if (!book_of(request.ticket.update).put_samples(request.ticket, std::move(samples))) {
    co_return Ack{};
  }
  context_.scope->spawn("score " + name_of(request.ticket), score(request.ticket));
  if (options_.with_reference && request.ticket.update < kFirstEvaluation) {
    context_.scope->spawn("reference " + name_of(request.ticket), reference(request.ticket));
  }
  co_return Ack{};
}

async::task<core::Result<void>> DataRole::score(core::Ticket ticket) {
  const BookGroup* group = book_of(ticket.update).find(ticket);
  if (group == nullptr) co_return core::Result<void>();
  TROUPE_CO_TRY_ASSIGN(prompt, prompt_of(*group));
  Score request;
  for (const BookSample& sample : group->samples) {
    request.items.push_back({prompt->text, sample.text, prompt->label, prompt->columns});
  }
  auto reply = co_await ask(context_, options_.reward_peer, std::move(request));
  TicketBook& book = book_of(ticket.update);
  if (reply) {
    book.put_scores(ticket, reply->values, reply->causes);
  } else {
    book.fail(ticket, reply.error().message);
  }
  changed_.notify_all();
  co_return core::Result<void>();
}

async::task<core::Result<void>> DataRole::reference(core::Ticket ticket) {
  const BookGroup* group = book_of(ticket.update).find(ticket);
  if (group == nullptr) co_return core::Result<void>();
  TROUPE_CO_TRY_ASSIGN(prompt, prompt_of(*group));
  ScoreLogprobs request;
  request.prompt = prompt->tokens;
  request.temperature = options_.temperature;
  for (const BookSample& sample : group->samples) request.responses.push_back(sample.tokens);
  auto reply = co_await ask(context_, options_.reference_peer, std::move(request));
  TicketBook& book = book_of(ticket.update);
  if (reply) {
    book.put_reference(ticket, std::move(reply->samples));
  } else {
    book.fail(ticket, reply.error().message);
  }
  changed_.notify_all();
  co_return core::Result<void>();
}

async::task<core::Result<GroupStatuses>> DataRole::on(AwaitGroups request) {
  TicketBook& book = book_of(request.update);
  while (!book.settled(request.update)) {
    const async::Deadline deadline = async::Deadline::after(*context_.timers, context_.call_deadline);
    if (!co_await changed_.wait(deadline)) {
      co_return core::fail(ErrorCode::kDeadline, "the groups of update " +
                                                     std::to_string(request.update) +
                                                     " still wait for scores");
    }
  }
  GroupStatuses reply;
  for (const BookGroup* group : book.groups_of(request.update)) {
    GroupStatus status;
    status.ticket = group->ticket;
    status.ready = group->state == GroupState::kReady;
    status.cause = group->cause;
    status.samples = static_cast<std::uint32_t>(group->samples.size());
    double sum = 0;
    for (const BookSample& sample : group->samples) {
      status.tokens += sample.tokens.size();
      sum += sample.score.value_or(0.0);
    }
    status.mean_score = group->samples.empty() ? 0 : sum / static_cast<double>(status.samples);
    reply.groups.push_back(std::move(status));
  }
  co_return reply;
}

async::task<core::Result<ExperiencePage>> DataRole::on(FetchExperience request) {
  const auto groups = book_.groups_of(request.update);
  if (!book_.ready(request.update) || request.cursor >= groups.size()) {
    co_return core::fail(ErrorCode::kInvalidArgument,
                         "update " + std::to_string(request.update) + " has no experience at " +
                             std::to_string(request.cursor));
  }
  constexpr std::uint64_t kPage_bytes_max = core::limits::kFrame_bytes_max * 3 / 4;
  ExperiencePage page;
  page.next = request.cursor;
  std::uint64_t bytes = 0;
  while (page.next < groups.size()) {
    TROUPE_CO_TRY_ASSIGN(prompt, prompt_of(*groups[page.next]));
    ExperienceGroup group = experience_of(*groups[page.next], *prompt);
    bytes += bytes_of(group);
    if (!page.groups.empty() && bytes > kPage_bytes_max) break;
    page.groups.push_back(std::move(group));
    ++page.next;
  }
  co_return page;
}

async::task<core::Result<Ack>> DataRole::on(CommitUpdate request) {
  TicketBook& book = book_of(request.update);
  std::vector<CommittedGroup> groups;
  for (const BookGroup* group : book.groups_of(request.update)) {
    TROUPE_CO_TRY_ASSIGN(prompt, prompt_of(*group));
    groups.push_back({group, prompt});
  }
  if (!book.ready(request.update)) {
    co_return core::fail(ErrorCode::kInvalidArgument, "a commit of groups that are not ready");
  }
  TROUPE_CO_TRY(sink_->commit(request.update, request.after_step, groups));
  for (const CommittedGroup& committed : groups) open_prompts_.erase(committed.group->ticket);
  TROUPE_CO_TRY(book.commit(request.update));
  co_return Ack{};
}

async::task<core::Result<Ack>> DataRole::on(SaveState request) {
  const nlohmann::json state = {{"next_prompt", book_.next_prompt()},
                                {"dropped_samples", book_.dropped_samples()},
                                {"failed_groups", book_.failed_groups()}};
  const auto path = std::filesystem::path(request.folder) / "data_state.json";
  std::ofstream file(path);
  file << state.dump(1) << '\n';
  file.close();
  if (!file) {
    co_return core::fail(ErrorCode::kResources,
                         "cannot write " + path.string() + ": is the disk full?");
  }
  co_return Ack{};
}

async::task<core::Result<Ack>> DataRole::on(LoadState request) {
  const auto path = std::filesystem::path(request.folder) / "data_state.json";
  std::ifstream file(path);
  const auto state = nlohmann::json::parse(file, nullptr, false);
  if (!state.is_object() || !state.value("next_prompt", nlohmann::json()).is_number_unsigned()) {
    co_return core::fail(ErrorCode::kData, path.string() + " is not the data role's state");
  }
  book_.set_next_prompt(state["next_prompt"].get<std::uint64_t>());
  co_return Ack{};
}

}  // namespace troupe::actors
