#include "actors/controller/fleet.hpp"

#include "actors/limits.hpp"
#include "runtime/experience/ticket.hpp"
#include "actors/protocol/ask.hpp"

#include <algorithm>

namespace troupe::actors {

using core::ErrorCode;

namespace {

// A generator that holds a prompt's prefix is worth two groups of extra load.
std::int64_t margin_of(const RunPlan& plan) {
  return std::int64_t{2} * plan.samples;
}

// Errors that say more about the generator than about the ticket.
bool is_sick(ErrorCode code) {
  return code == ErrorCode::kResources || code == ErrorCode::kInternal ||
         code == ErrorCode::kDeadline || code == ErrorCode::kInterrupted;
}

// Nobody asked this run to stop.
ErrorCode code_of_end(ErrorCode code) {
  return code == ErrorCode::kInterrupted ? ErrorCode::kInternal : code;
}

}  // namespace

Fleet::Fleet(RoleContext context, const RunPlan& plan, RunListener& listener, Hooks hooks)
    : context_(std::move(context)),
      plan_(plan),
      listener_(listener),
      hooks_(std::move(hooks)),
      router_(margin_of(plan), static_cast<std::uint32_t>(limits::kGeneratorGroups_max)) {}

void Fleet::begin(async::Scope& scope) {
  scope_ = &scope;
  look_alone();
  dispatch();
}

void Fleet::add(const std::vector<experience::Ticket>& tickets, TicketWork like) {
  for (const experience::Ticket& ticket : tickets) {
    TicketWork work = like;
    work.ticket = ticket;
    queue_.put(std::move(work));
  }
  dispatch();
}

std::uint32_t Fleet::capacity(WorkKind kind) const {
  const std::uint32_t groups =
      kind == WorkKind::kEvaluation ? plan_.evaluation_groups : plan_.groups;
  const auto able = static_cast<std::uint32_t>(std::max<std::size_t>(generators_able(), 1));
  return std::max<std::uint32_t>((groups + able - 1) / able, 1);
}

void Fleet::dispatch() {
  if (scope_ == nullptr) return;
  for (const WorkKind kind : {WorkKind::kEvaluation, WorkKind::kTraining}) {
    for (const std::uint64_t id : assign(kind)) {
      const auto flight = flights_.find(id);
      if (flight != flights_.end()) scope_->spawn("", sample(id, flight->second.generator));
    }
  }
}

// Gives waiting tickets to generators; the flights that begin. A ticket that failed somewhere waits
// for a generator where it did not, while there is one; the others need not wait with it.
std::vector<std::uint64_t> Fleet::assign(WorkKind kind) {
  using Offer = TicketQueue::Offer;
  std::vector<std::uint64_t> begun;
  const std::uint32_t room = capacity(kind);
  bool full = false;  // for a ticket that may go anywhere
  queue_.offer(kind, [&](const TicketWork& work) {
    const std::set<std::string>* avoid = failures_.where(work.ticket);
    if (avoid != nullptr && !router_.others_for(work, *avoid)) avoid = nullptr;
    if (full && avoid == nullptr) return failures_.empty() ? Offer::kEnough : Offer::kLeft;
    const auto name =
        avoid == nullptr ? router_.pick(work, room) : router_.pick(work, room, *avoid);
    if (!name) {
      full = full || avoid == nullptr;
      return Offer::kLeft;
    }
    router_.sent(*name, work);
    const std::uint64_t id = next_flight_++;
    flights_.emplace(id, Flight{work, *name, false, false});
    begun.push_back(id);
    return Offer::kTaken;
  });
  return begun;
}

async::task<core::Result<void>> Fleet::sample(std::uint64_t id, std::string name) {
  const auto place = flights_.find(id);
  if (place == flights_.end()) co_return core::Result<void>();  // lost before it was sent
  Generate request;
  request.tickets = {place->second.work.ticket};
  request.sampling = *place->second.work.sampling;
  request.version_min = place->second.work.version_min;
  auto reply = co_await ask(context_, std::move(name), std::move(request));
  co_return ended(id, reply);
}

core::Result<void> Fleet::ended(std::uint64_t id, const core::Result<Generated>& reply) {
  const auto place = flights_.find(id);
  if (place == flights_.end()) return {};  // its generator was lost: the ticket is elsewhere
  Flight flight = std::move(place->second);
  flights_.erase(place);
  const std::uint64_t update = flight.work.ticket.update;
  router_.ended(flight.generator, flight.work);
  if (reply) {
    generators_.at(flight.generator).failures = 0;
    failures_.forget(flight.work.ticket);
    const bool whole = reply->samples >= static_cast<std::uint64_t>(flight.work.samples);
    if (flight.cut && !whole) {
      ++counts_["cut short"];
    } else if (reply->samples == 0) {
      // The data role has given the ticket up, say because its reward was lost while the ticket was
      // on its way: the slot has another attempt, or gets one.
      ++counts_["ticket given up"];
    }
  } else if (!flight.forgotten) {
    const core::Error error = without_name(reply.error(), flight.generator);
    TROUPE_TRY(failed(std::move(flight), error));
  }
  if (open(update) == 0) hooks_.settled(update);
  dispatch();
  return {};
}

core::Result<void> Fleet::failed(Flight flight, const core::Error& error) {
  switch (error.code) {
    case ErrorCode::kPeerLost:
    case ErrorCode::kClosed:
      ++counts_["generator lost"];
      queue_.put(std::move(flight.work));
      gone(flight.generator, error);
      return {};
    case ErrorCode::kOverloaded:
      ++counts_["generator full"];
      router_.block(flight.generator, true);
      queue_.put(std::move(flight.work));
      scope_->spawn("", unblock(flight.generator));
      return {};
    case ErrorCode::kDeadline:
      if (!flight.cut) return blame(std::move(flight), error);
      ++counts_["straggler retired"];
      hooks_.retired(flight.work.ticket);
      return {};
    default:
      return blame(std::move(flight), error);
  }
}

// The ticket's fault or the generator's: what the ticket does elsewhere will tell.
core::Result<void> Fleet::blame(Flight flight, const core::Error& error) {
  const experience::Ticket ticket = flight.work.ticket;
  const std::string name = flight.generator;
  const std::size_t times = failures_.add(ticket, name);
  ++counts_["ticket failed"];
  if (times >= limits::kTicketFailures_max) {
    return core::fail(code_of_end(error.code),
                      name_of(ticket) + " failed " + std::to_string(times) +
                          " times, the last time at " + name + ": " + error.message);
  }
  const bool untried = router_.others_for(flight.work, *failures_.where(ticket));
  queue_.put(std::move(flight.work));
  const std::uint64_t in_a_row = ++generators_.at(name).failures;
  if (is_sick(error.code) || in_a_row >= limits::kGeneratorFailures_max || !untried) {
    restart(name, error);
  } else {
    listener_.on_note(name + ": " + error.message + "; the group is sampled elsewhere");
  }
  return {};
}

async::task<core::Result<void>> Fleet::unblock(std::string name) {
  co_await async::sleep_for(*context_.timers, limits::kOverloadBackoff);
  router_.block(name, false);
  dispatch();
  co_return core::Result<void>();
}

std::size_t Fleet::cut(std::uint64_t update) {
  std::map<std::string, CutGroups> by_generator;
  std::size_t groups = 0;
  for (auto& [id, flight] : flights_) {
    if (flight.work.ticket.update != update || flight.cut) continue;
    flight.cut = true;
    ++groups;
    by_generator[flight.generator].tickets.push_back(flight.work.ticket);
  }
  for (auto& [name, request] : by_generator) {
    scope_->spawn("", tell_cut(name, std::move(request)));
  }
  return groups;
}

// What becomes of the groups their Generate calls tell; what becomes of the generator, too.
async::task<core::Result<void>> Fleet::tell_cut(std::string name, CutGroups request) {
  auto reply = co_await ask(context_, std::move(name), std::move(request));
  static_cast<void>(reply);
  co_return core::Result<void>();
}

void Fleet::forget(std::uint64_t update) {
  queue_.forget(update);
  failures_.forget_update(update);
  for (auto& [id, flight] : flights_) {
    if (flight.work.ticket.update == update) flight.forgotten = true;
  }
}

std::size_t Fleet::open(std::uint64_t update) const {
  const auto flying = std::count_if(flights_.begin(), flights_.end(), [update](const auto& entry) {
    return entry.second.work.ticket.update == update;
  });
  return queue_.count(update) + static_cast<std::size_t>(flying);
}

}  // namespace troupe::actors
