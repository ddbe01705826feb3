#include "actors/controller/fleet.hpp"

#include "actors/controller/limits.hpp"
#include "actors/controller/patience.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/containment.hpp"
#include "actors/protocol/limits.hpp"
#include "runtime/core/find_value.hpp"

#include <algorithm>

namespace troupe::actors::controller {

Fleet::Fleet(RunState& run, std::function<void(const experience::Ticket&)> retired, FleetKind kind)
    : run_(run),
      retired_(std::move(retired)),
      members_(run, kind),
      faults_(run, members_),
      weights_(
          run,
          members_,
          {[this] { dispatch(); },
           [this](const std::string& name, const core::Error& cause) { gone(name, cause); },
           [this](const std::string& name, const core::Error& cause) { restart(name, cause); }}),
      landed_(*run.context.timers) {}

void Fleet::begin() {
  members_.look();
  dispatch();
}

// ---- tickets -----------------------------------------------------------------------------------

void Fleet::add(const std::vector<experience::Ticket>& tickets, TicketWork like) {
  for (const experience::Ticket& ticket : tickets) {
    like.ticket = ticket;
    queue_.put(like);
  }
  dispatch();
}

std::uint32_t Fleet::capacity(WorkKind kind) const {
  const std::uint32_t groups =
      kind == WorkKind::kEvaluation ? run_.plan.evaluation_groups : run_.plan.groups;
  const auto members = static_cast<std::uint32_t>(std::max<std::size_t>(members_.able(), 1));
  return std::max<std::uint32_t>((groups + members - 1) / members, 1);
}

void Fleet::dispatch() {
  if (run_.scope == nullptr) return;
  landed_.notify_all();
  assign(WorkKind::kEvaluation);
  assign(WorkKind::kTraining);
}

// Gives waiting tickets to generators. A ticket that failed waits for a generator where it has not
// failed yet, if there is one; one whose generators were lost, for one with little to do. Other
// tickets overtake them meanwhile.
void Fleet::assign(WorkKind kind) {
  using Offer = TicketQueue::Offer;
  const std::uint32_t room = capacity(kind);
  bool full = false;  // no generator has room, even for a ticket that may go anywhere
  queue_.offer(kind, [&](const TicketWork& waiting) {
    TicketWork work = waiting;
    work.among = groups_among(room, faults_.losses(work.ticket));
    const std::set<std::string>* avoid = faults_.avoided(work.ticket);
    if (avoid != nullptr && !members_.router().others_for(work, *avoid)) avoid = nullptr;
    const bool anywhere = avoid == nullptr && work.among == kAnyNumber;
    if (full && anywhere) return faults_.none() ? Offer::kEnough : Offer::kLeft;
    const auto name = avoid == nullptr ? members_.router().pick(work, room)
                                       : members_.router().pick(work, room, *avoid);
    if (!name) {
      full = full || anywhere;
      return Offer::kLeft;
    }
    members_.router().sent(*name, work);
    flights_.emplace(++last_flight_, Flight{work, *name});
    run_.scope->spawn("", sample(last_flight_));
    return Offer::kTaken;
  });
}

async::task<core::Result<void>> Fleet::sample(std::uint64_t id) {
  const Flight* const flight = core::find_value(flights_, id);
  if (flight == nullptr) co_return core::Result<void>();  // lost before it was sent
  Generate request{{flight->work.ticket}, *flight->work.sampling, flight->work.version_min};
  auto reply = co_await ask(run_.context, flight->generator, std::move(request));
  ended(id, reply);
  co_return core::Result<void>();
}

void Fleet::ended(std::uint64_t id, const core::Result<Generated>& reply) {
  auto place = flights_.extract(id);
  if (place.empty()) return;  // its generator was lost: the ticket is elsewhere
  Flight flight = std::move(place.mapped());
  members_.router().ended(flight.generator, flight.work);
  landed_.notify_all();
  if (reply) {
    faults_.succeeded(flight.work.ticket, flight.generator);
    members_.at(flight.generator).refusals = 0;
    const bool whole = reply->samples >= static_cast<std::uint64_t>(flight.work.samples);
    if (flight.cut && !whole) {
      ++run_.counts["cut short"];
    } else if (reply->samples == 0) {
      // The data role has given the ticket up, say because its reward was lost while the ticket was
      // on its way: the slot has another attempt, or gets one.
      ++run_.counts["ticket given up"];
    }
  } else if (!flight.forgotten) {
    const core::Error error = without_name(reply.error(), flight.generator);
    failed(std::move(flight), error);
  }
  dispatch();
}

void Fleet::failed(Flight flight, const core::Error& error) {
  const Reaction reaction = reaction_to(AskedFor::kSamples, error.code);
  if (is_loss(error.code)) {
    const bool alone = members_.router().groups(flight.generator) == 0;
    if (faults_.lost(flight.work.ticket, flight.generator, alone)) queue_.put(flight.work);
    gone(flight.generator, error);
  } else if (reaction == Reaction::kAgain) {
    ++run_.counts[std::string(members_.kind().noun) + " full"];
    FleetMembers::Member& generator = members_.at(flight.generator);
    // One that has nothing to do is not full.
    const bool idle = members_.router().groups(flight.generator) == 0;
    if (idle && ++generator.refusals > limits::kRefusals_max) {
      generator.refusals = 0;
      return blame(std::move(flight), error);
    }
    queue_.put(std::move(flight.work));
    members_.router().block(flight.generator, true);
    run_.scope->spawn("", unblock(flight.generator));
  } else if (error.code == ErrorCode::kDeadline && flight.cut) {
    ++run_.counts["straggler retired"];
    retired_(flight.work.ticket);
  } else {
    blame(std::move(flight), error);
  }
}

// Sends the ticket to another generator: if it fails there, too, the fault is likely the ticket's.
void Fleet::blame(Flight flight, const core::Error& error) {
  const experience::Ticket ticket = flight.work.ticket;
  const std::string name = flight.generator;
  ++run_.counts["ticket failed"];
  const TicketFaults::Finding found = faults_.failed(ticket, name, error, true);
  if (found.given_up) return;
  const bool untried = members_.router().others_for(flight.work, *faults_.avoided(ticket));
  queue_.put(std::move(flight.work));
  const Reaction reaction = reaction_to(AskedFor::kSamples, error.code);
  const bool sick = reaction == Reaction::kRestarted || reaction == Reaction::kAgain;
  if (!found.of_member) {
    run_.listener.on_note(name + ": " + error.message + "; another prompt shows whose fault it is");
  } else if (sick || found.keeps_failing || !untried) {
    restart(name, error);
  } else {
    run_.listener.on_note(name + ": " + error.message + "; the group is sampled elsewhere");
  }
}

async::task<void> Fleet::unblock(std::string name) {
  co_await async::sleep_for(*run_.context.timers, actors::limits::kOverloadBackoff);
  members_.router().block(name, false);
  dispatch();
}

void Fleet::cut(std::uint64_t update) {
  std::map<std::string, CutGroups> by_generator;
  for (auto& [id, flight] : flights_) {
    if (flight.work.ticket.update != update || flight.cut) continue;
    flight.cut = true;
    by_generator[flight.generator].tickets.push_back(flight.work.ticket);
  }
  for (auto& [name, request] : by_generator) {
    run_.scope->spawn("", tell_cut(name, std::move(request)));
  }
}

// Ignores the answer: the groups' own Generate calls report what became of groups and generator.
async::task<void> Fleet::tell_cut(std::string name, CutGroups request) {
  auto reply = co_await ask(run_.context, std::move(name), std::move(request));
  static_cast<void>(reply);
}

void Fleet::forget(std::uint64_t update) {
  queue_.forget(update);
  faults_.forget_update(update);
  for (auto& [id, flight] : flights_) {
    if (flight.work.ticket.update == update) flight.forgotten = true;
  }
}

// ---- calls -------------------------------------------------------------------------------------

std::optional<Fleet::Taken> Fleet::take(TicketWork work, const std::set<std::string>& avoid) {
  auto name = members_.router().pick(work, kAnyNumber, avoid);
  if (!name && !members_.router().others_for(work, avoid))
    name = members_.router().pick(work, kAnyNumber);
  if (!name) return std::nullopt;
  members_.router().sent(*name, work);
  return Taken{*name, members_.at(*name).life, std::move(work)};
}

void Fleet::answered(const Taken& taken, const core::Error* error) {
  if (!members_.lives(taken.member, taken.life)) return;
  members_.router().ended(taken.member, taken.work);
  landed_.notify_all();
  if (error == nullptr) {
    return faults_.succeeded(taken.work.ticket, taken.member);
  }
  const Reaction reaction = reaction_to(AskedFor::kSamples, error->code);
  if (is_loss(error->code)) {
    gone(taken.member, *error);
  } else if (reaction == Reaction::kAgain) {
    members_.router().block(taken.member, true);
    run_.scope->spawn("", unblock(taken.member));
  } else {
    const auto found = faults_.failed(taken.work.ticket, taken.member, *error, false);
    if (found.of_member && (reaction == Reaction::kRestarted || found.keeps_failing))
      restart(taken.member, *error);
  }
}

// ---- generators that come and go ---------------------------------------------------------------

void Fleet::up(const std::string& name, std::uint64_t epoch) {
  if (members_.is_up(name)) lost(name, "it started again");
  faults_.started_again(name);
  members_.up(name, epoch);
  weights_.begin(name);
  if (!members_.kind().weights) dispatch();
}

void Fleet::lost(const std::string& name, const std::string& cause) {
  if (!members_.is_up(name)) return;
  members_.at(name).up = false;
  members_.failed(name, cause);
  const bool one = members_.router().groups(name) == 1;
  std::erase_if(flights_, [&](const auto& entry) {
    const Flight& flight = entry.second;
    if (flight.generator != name) return false;
    const experience::Ticket& ticket = flight.work.ticket;
    if (!flight.forgotten && faults_.lost(ticket, name, one)) queue_.put(flight.work);
    return true;
  });
  members_.down(name, cause);
  landed_.notify_all();
  dispatch();
}

async::task<void> Fleet::drain(std::string name, async::Deadline deadline) {
  if (!members_.is_up(name)) co_return;
  const std::uint64_t life = members_.at(name).life;
  members_.router().leave(name);
  members_.look();
  dispatch();  // others may have more at a time now
  while (members_.router().groups(name) > 0 && members_.at(name).life == life) {
    if (!co_await landed_.wait(deadline)) break;
  }
}

// Treats the generator as lost, because a call to it failed or because it must be restarted.
// Through `restart_` the company starts it again if it has not done so already.
void Fleet::gone(const std::string& name, const core::Error& cause) {
  const std::uint64_t epoch = members_.at(name).epoch;
  lost(name, cause.message);
  if (restart_) restart_(name, epoch, cause);
}

void Fleet::restart(const std::string& name, const core::Error& cause) {
  ++run_.counts[std::string(members_.kind().noun) + " restarted"];
  const std::uint64_t life = members_.at(name).life;
  members_.at(name).sick = true;
  gone(name, cause);
  if (!restart_) run_.scope->spawn("", come_back(name, life));
}

async::task<void> Fleet::come_back(std::string name, std::uint64_t life) {
  co_await async::sleep_for(*run_.context.timers, limits::kRestartAfter);
  const FleetMembers::Member& member = members_.at(name);
  if (!member.up && member.life == life) up(name, member.epoch);
}

}  // namespace troupe::actors::controller
