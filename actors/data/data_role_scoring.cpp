// What the data role asks its scorers, and how rewards come and go.
#include "actors/data/data_role.hpp"
#include "runtime/core/find_value.hpp"
#include "runtime/core/limits.hpp"

#include <algorithm>

namespace troupe::actors {
namespace {

using core::ErrorCode;

std::string uneven(std::size_t got, std::size_t wanted) {
  return "it gave " + std::to_string(got) + " answers for " + std::to_string(wanted) + " samples";
}

}  // namespace

Scorer& DataRole::scorer_of(const std::string& peer, const std::string& name) {
  return scorers_
      .try_emplace(peer, name, options_.patience, *context_.timers, options_.note, changed_)
      .first->second;
}

std::optional<core::Error> DataRole::hopeless(std::uint64_t update) const {
  const bool training = !experience::is_evaluation(update);
  const TicketBook& book = training ? book_ : evaluation_book_;
  for (const BookGroup* group : book.groups_of(update)) {
    if (group->state != GroupState::kGenerated) continue;
    std::vector<std::string> awaited;
    for (std::size_t m = 0; m < group->scored.size(); ++m) {
      if (!group->scored[m]) awaited.push_back(group->rewards->members[m].peer);
    }
    if (training && options_.with_reference && !group->referenced)
      awaited.push_back(options_.reference_peer);
    for (const std::string& peer : awaited) {
      const Scorer* const scorer = core::find_value(scorers_, peer);
      if (scorer == nullptr) continue;
      if (auto error = scorer->gone()) return error;
    }
  }
  return std::nullopt;
}

// The generator kept the samples to itself. The slot is issued again, with another prompt.
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

void DataRole::tell_unscored(const BookGroup& group) {
  for (const Unscored& unscored : group.unscored) {
    unscored_note_(name_of(group.ticket) + ", sample " + std::to_string(unscored.sample + 1) +
                   " has no score: " + unscored.cause);
  }
}

// A reward that has not said what it reads is asked without any of it; it answers with what it
// wants, and is asked again. The same when another one took its place.
async::task<core::Result<Scores>> DataRole::scores_of(experience::Ticket ticket, std::size_t member) {
  constexpr int kAsked_max = 4;
  TicketBook& book = book_of(ticket.update);
  const RewardMember reward = book.find(ticket)->rewards->members[member];
  const std::function<bool()> wanted = [&book, ticket, member] {
    return book.waits_for(ticket, member);
  };
  for (int asked = 0; asked < kAsked_max; ++asked) {
    const BookGroup* group = book.find(ticket);
    if (!wanted()) break;
    TROUPE_CO_TRY_ASSIGN(prompt, prompt_of(*group));
    Score request;
    request.group.prompt = prompt->text;
    request.group.label = prompt->label;
    Scorer& scorer = scorer_of(reward.peer, "reward " + reward.name);
    request.sent = scorer.reads;
    request.group.columns = row_with(prompt->columns, request.sent);
    if (request.sent.messages) request.group.messages = prompt->messages;
    if (!experience::is_evaluation(ticket.update)) request.group.update = ticket.update;
    for (const experience::Trajectory& sample : group->samples) {
      RewardSample& one = request.group.samples.emplace_back();
      one.response = sample.text;
      if (request.sent.tokens) one.tokens = sample.tokens;
    }
    auto reply = co_await ask_patiently(context_, reward.peer, std::move(request), &scorer, wanted);
    if (!reply || !reply->wanted) co_return reply;
    scorer.reads = *reply->wanted;
  }
  co_return core::fail(ErrorCode::kData,
                       reward.peer + " wants something else each time it is asked");
}

async::task<void> DataRole::score(experience::Ticket ticket, std::size_t member) {
  TicketBook& book = book_of(ticket.update);
  if (!book.waits_for(ticket, member)) co_return;
  const RewardMember reward = book.find(ticket)->rewards->members[member];
  const std::size_t samples = book.find(ticket)->samples.size();
  auto reply = co_await scores_of(ticket, member);
  const std::string name = "reward " + reward.name;
  if (!reply) {
    const bool gone = passing(reply.error().code);
    book.fail(ticket, gone ? FailureKind::kRewardGone : FailureKind::kReward,
              name + ": " + reply.error().message);
  } else if (reply->values.size() != samples) {
    book.fail(ticket, FailureKind::kReward, name + ": " + uneven(reply->values.size(), samples));
  } else {
    const bool taken = book.put_scores(ticket, member, reply->values, reply->causes, reply->extras);
    if (taken) tell_unscored(*book.find(ticket));
  }
  changed_.notify_all();
}

async::task<core::Result<void>> DataRole::reference(experience::Ticket ticket) {
  TicketBook& book = book_of(ticket.update);
  const BookGroup* group = book.find(ticket);
  if (group == nullptr || group->state != GroupState::kGenerated) co_return core::Result<void>();
  TROUPE_CO_TRY_ASSIGN(prompt, prompt_of(*group));
  ScoreLogprobs request;
  request.prompt = prompt->tokens;
  request.temperature = options_.temperature;
  for (const experience::Trajectory& sample : group->samples)
    request.responses.push_back(sample.tokens);
  std::function<bool()> wanted = [&book, ticket] {
    const BookGroup* waiting = book.find(ticket);
    return waiting != nullptr && waiting->state == GroupState::kGenerated;
  };
  Scorer& scorer = scorer_of(options_.reference_peer, "the reference model");
  auto reply = co_await ask_patiently(context_, options_.reference_peer, std::move(request),
                                      &scorer, wanted);
  if (!reply) {
    book.fail(ticket, FailureKind::kReference, reply.error().message);
  } else if (wanted() && !book.put_reference(ticket, std::move(reply->samples))) {
    book.fail(ticket, FailureKind::kReference,
              options_.reference_peer + " gave log-probs that do not fit the samples");
  }
  changed_.notify_all();
  co_return core::Result<void>();
}

async::task<core::Result<Ack>> DataRole::on(SetRewards request) {
  TROUPE_CO_TRY_ASSIGN(added, sets_.add(request));
  if (!added) co_return Ack{};
  for (const std::string& name : request.lost) {
    book_.lose(name, request.set);
    evaluation_book_.lose(name, request.set);
  }
  changed_.notify_all();
  co_return Ack{};
}

// By an open group, or by the next update, whose tickets may still be to come before a change
// holds.
bool DataRole::needed(const std::string& reward) const {
  return book_.waits_for(reward) || evaluation_book_.waits_for(reward) ||
         sets_.for_update(book_.next_update())->member(reward).has_value();
}

async::task<core::Result<Ack>> DataRole::on(DrainReward request) {
  const async::Deadline deadline = async::Deadline::after(*context_.timers, context_.call_deadline);
  do {
    if (sets_.newest()->member(request.name)) {
      co_return core::fail(ErrorCode::kInvalidArgument, "reward " + request.name +
                                                            " is in reward set " +
                                                            std::to_string(sets_.newest()->number) +
                                                            ", the newest; it cannot be drained");
    }
    if (!needed(request.name)) {
      // From here on a slot that is issued again gets a set without it.
      sets_.retire(request.name);
      co_return Ack{};
    }
  } while (co_await changed_.wait(deadline));
  co_return core::fail(ErrorCode::kDeadline, "groups still wait for reward " + request.name);
}

}  // namespace troupe::actors
