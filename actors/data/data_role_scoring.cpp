// What the data role asks its scorers, and how rewards come and go.
#include "actors/data/data_role.hpp"
#include "actors/data/ticket_name.hpp"

namespace troupe::actors {
namespace {

using core::ErrorCode;

std::string uneven(std::size_t got, std::size_t wanted) {
  return "it gave " + std::to_string(got) + " answers for " + std::to_string(wanted) + " samples";
}

}  // namespace

CallGate* DataRole::gate_to(const std::string& peer) {
  return &gates_.try_emplace(peer, core::limits::kScorerCalls_max).first->second;
}

// A reward that has not said what it reads is asked without any column; it answers with those that
// it wants, and is asked again. The same when another one took its place.
async::task<core::Result<Scores>> DataRole::scores_of(core::Ticket ticket, std::size_t member) {
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
    request.prompt = prompt->text;
    request.label = prompt->label;
    request.sent = read_[reward.peer];
    request.columns = row_with(prompt->columns, request.sent);
    for (const BookSample& sample : group->samples)
      request.items.push_back({sample.text});
    auto reply = co_await ask_patiently(context_, reward.peer, std::move(request),
                                        options_.patience, gate_to(reward.peer), wanted, &retries_);
    if (!reply || !reply->wanted) co_return reply;
    read_[reward.peer] = *reply->wanted;
  }
  co_return core::fail(ErrorCode::kData, reward.peer + " wants other columns each time it is asked");
}

async::task<core::Result<void>> DataRole::score(core::Ticket ticket, std::size_t member) {
  TicketBook& book = book_of(ticket.update);
  if (!book.waits_for(ticket, member)) co_return core::Result<void>();
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
    book.put_scores(ticket, member, reply->values, reply->causes);
  }
  changed_.notify_all();
  co_return core::Result<void>();
}

async::task<core::Result<void>> DataRole::reference(core::Ticket ticket) {
  TicketBook& book = book_of(ticket.update);
  const BookGroup* group = book.find(ticket);
  if (group == nullptr || group->state != GroupState::kGenerated) co_return core::Result<void>();
  TROUPE_CO_TRY_ASSIGN(prompt, prompt_of(*group));
  ScoreLogprobs request;
  request.prompt = prompt->tokens;
  request.temperature = options_.temperature;
  for (const BookSample& sample : group->samples)
    request.responses.push_back(sample.tokens);
  std::function<bool()> wanted = [&book, ticket] {
    const BookGroup* waiting = book.find(ticket);
    return waiting != nullptr && waiting->state == GroupState::kGenerated;
  };
  auto reply = co_await ask_patiently(context_, options_.reference_peer, std::move(request),
                                      options_.patience, gate_to(options_.reference_peer), wanted,
                                      &retries_);
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
