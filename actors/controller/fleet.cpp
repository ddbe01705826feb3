#include "actors/controller/fleet.hpp"

#include "actors/controller/patience.hpp"
#include "actors/limits.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/containment.hpp"
#include "runtime/core/find_value.hpp"

#include <algorithm>
#include <limits>

namespace troupe::actors {

using core::ErrorCode;

// A generator that holds a prompt's prefix is worth two groups of extra load.
Fleet::Fleet(RunState& run, std::function<void(const experience::Ticket&)> retired, FleetKind kind)
    : run_(run),
      kind_(kind),
      retired_(std::move(retired)),
      router_(std::int64_t{2} * run.plan.samples, kind.work_max),
      landed_(*run.context.timers) {}

void Fleet::begin() {
  look_alone();
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
  const auto members = static_cast<std::uint32_t>(std::max<std::size_t>(able(), 1));
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
    work.among = groups_among(room, failures_.losses(work.ticket));
    const std::set<std::string>* avoid = failures_.where(work.ticket);
    if (avoid != nullptr && !router_.others_for(work, *avoid)) avoid = nullptr;
    const bool anywhere = avoid == nullptr && work.among == kAnyNumber;
    if (full && anywhere) return failures_.empty() ? Offer::kEnough : Offer::kLeft;
    const auto name =
        avoid == nullptr ? router_.pick(work, room) : router_.pick(work, room, *avoid);
    if (!name) {
      full = full || anywhere;
      return Offer::kLeft;
    }
    router_.sent(*name, work);
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
  const std::uint64_t update = flight.work.ticket.update;
  router_.ended(flight.generator, flight.work);
  landed_.notify_all();
  if (reply) {
    well_sampled(flight.work.ticket, flight.generator);
    generators_.at(flight.generator).refusals = 0;
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
    stranded(flight, router_.groups(flight.generator) == 0);
    gone(flight.generator, error);
  } else if (reaction == Reaction::kAgain) {
    ++run_.counts[std::string(kind_.noun) + " full"];
    Generator& generator = generators_.at(flight.generator);
    // One that has nothing to do is not full.
    const bool idle = router_.groups(flight.generator) == 0;
    if (idle && ++generator.refusals > limits::kRefusals_max) {
      generator.refusals = 0;
      return blame(std::move(flight), error);
    }
    queue_.put(std::move(flight.work));
    router_.block(flight.generator, true);
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
  const std::size_t times = failures_.add(ticket, name);
  ++run_.counts["ticket failed"];
  const NumericFaults::Verdict verdict = verdict_on(ticket, name, error);
  if (times >= limits::kTicketFailures_max) {
    return give_up(ticket, "it failed " + std::to_string(times) + " times, the last time at " +
                               name + ": " + error.message);
  }
  const bool untried = router_.others_for(flight.work, *failures_.where(ticket));
  queue_.put(std::move(flight.work));
  const bool keeps_failing = failures_.at(name) >= limits::kGeneratorFailures_max;
  const Reaction reaction = reaction_to(AskedFor::kSamples, error.code);
  const bool sick = reaction == Reaction::kRestarted || reaction == Reaction::kAgain;
  if (verdict != NumericFaults::Verdict::kGenerator) {
    run_.listener.on_note(name + ": " + error.message + "; another prompt shows whose fault it is");
  } else if (sick || keeps_failing || !untried) {
    restart(name, error);
  } else {
    run_.listener.on_note(name + ": " + error.message + "; the group is sampled elsewhere");
  }
}

// Of an error that is not numeric the generator's, as far as numbers say.
NumericFaults::Verdict Fleet::verdict_on(const experience::Ticket& ticket,
                                         const std::string& name,
                                         const core::Error& error) {
  using Verdict = NumericFaults::Verdict;
  if (error.code != ErrorCode::kNumeric || !kind_.weights) return Verdict::kGenerator;
  const core::Version version = generators_.at(name).holds.value_or(0);
  const std::size_t wanted = std::min(NumericFaults::kPrompts_max, run_.prompts.all(ticket));
  const Verdict verdict =
      numeric_.add(name, version, run_.prompts.id_of(ticket), wanted, error.message);
  if (verdict == Verdict::kWeights && !run_.diverged) {
    const std::string what =
        wanted == 1 ? "the only prompt has" : std::to_string(wanted) + " different prompts have";
    run_.scope->spawn(
        "", diverged(version, what + " logits that are not finite on " + name +
                                  ", which was started again for it (" + error.message + ")"));
  }
  return verdict;
}

void Fleet::well_sampled(const experience::Ticket& ticket, const std::string& name) {
  Generator& generator = generators_.at(name);
  failures_.succeeded(ticket, name);
  if (generator.holds) numeric_.succeeded(*generator.holds);
  generator.sick = false;
  look_alone();
}

// Ends the run: other weights are needed.
async::task<core::Result<void>> Fleet::diverged(core::Version version, std::string what) {
  const std::uint64_t updates = run_.starts.first_with(version);
  run_.diverged = updates;
  const std::string whose =
      updates == 0 ? "the weights that the run began with are at fault: "
                   : "the weights after " + run_.plan.name_of(updates) + " have diverged: ";
  co_return core::fail(ErrorCode::kNumeric, whose + what);
}

// Its generator was lost. It is sampled again, unless its generators are lost again and again, the
// last one while it sampled nothing else.
void Fleet::stranded(const Flight& flight, bool alone) {
  ++run_.counts[std::string(kind_.noun) + " lost"];
  const std::size_t times = failures_.lost(flight.work.ticket, flight.generator);
  if (!alone || times < limits::kTicketLosses_max) return queue_.put(flight.work);
  give_up(flight.work.ticket, std::to_string(times) +
                                  " times the generator that sampled it was lost, the last time " +
                                  flight.generator + ", which sampled nothing else");
}

void Fleet::give_up(const experience::Ticket& ticket, std::string cause) {
  ++run_.counts["ticket set aside"];
  // One generator alone may fail at any ticket.
  const std::set<std::string> cleared = failures_.blamed(ticket);
  for (const std::string& name : cleared)
    if (clear_ && cleared.size() > 1) clear_(name);
  failures_.forget(ticket);
  run_.scope->spawn("", set_aside(ticket, std::move(cause)));
}

async::task<core::Result<void>> Fleet::set_aside(experience::Ticket ticket, std::string cause) {
  SetAside request{ticket, std::move(cause)};
  TROUPE_CO_TRY(co_await ask(run_.context, kDataRole, std::move(request)));
  co_return core::Result<void>();
}

async::task<void> Fleet::unblock(std::string name) {
  co_await async::sleep_for(*run_.context.timers, limits::kOverloadBackoff);
  router_.block(name, false);
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

// ---- calls
// ---------------------------------------------------------------------------------------

std::optional<Fleet::Taken> Fleet::take(TicketWork work, const std::set<std::string>& avoid) {
  auto name = router_.pick(work, kAnyNumber, avoid);
  if (!name && !router_.others_for(work, avoid)) name = router_.pick(work, kAnyNumber);
  if (!name) return std::nullopt;
  router_.sent(*name, work);
  return Taken{*name, generators_.at(*name).life, std::move(work)};
}

void Fleet::answered(const Taken& taken, const core::Error* error) {
  Generator& member = generators_.at(taken.member);
  if (!member.up || member.life != taken.life) return;
  router_.ended(taken.member, taken.work);
  landed_.notify_all();
  if (error == nullptr) {
    return well_sampled(taken.work.ticket, taken.member);
  }
  const Reaction reaction = reaction_to(AskedFor::kSamples, error->code);
  if (is_loss(error->code)) {
    gone(taken.member, *error);
  } else if (reaction == Reaction::kAgain) {
    router_.block(taken.member, true);
    run_.scope->spawn("", unblock(taken.member));
  } else {
    failures_.add(taken.work.ticket, taken.member);
    const bool keeps_failing = failures_.at(taken.member) >= limits::kGeneratorFailures_max;
    const bool of_generator =
        verdict_on(taken.work.ticket, taken.member, *error) == NumericFaults::Verdict::kGenerator;
    if (of_generator && (reaction == Reaction::kRestarted || keeps_failing))
      restart(taken.member, *error);
  }
}

// ---- generators that come and go ---------------------------------------------------------------

void Fleet::up(const std::string& name, std::uint64_t epoch) {
  Generator& generator = generators_[name];
  if (generator.up) lost(name, "it started again");
  generator = {.up = true,
               .life = generator.life + 1,
               .epoch = epoch,
               .misses = generator.misses,
               .sick = generator.sick};
  failures_.started_again(name);
  router_.up(name);
  if (!kind_.weights) {
    generator.holds = 0;
    router_.holds(name, std::numeric_limits<core::Version>::max());
  }
  run_.listener.on_peer(name, true, "");
  look_alone();
  if (run_.scope != nullptr && latest_) start_push(name);
  if (!kind_.weights) dispatch();
}

void Fleet::lost(const std::string& name, const std::string& cause) {
  Generator* const generator = core::find_value(generators_, name);
  if (generator == nullptr || !generator->up) return;
  generator->up = false;
  last_cause_ = name + ": " + cause;
  const bool one = router_.groups(name) == 1;
  std::erase_if(flights_, [&](const auto& entry) {
    const Flight& flight = entry.second;
    if (flight.generator != name) return false;
    if (!flight.forgotten) stranded(flight, one);
    return true;
  });
  router_.down(name);
  landed_.notify_all();
  run_.listener.on_peer(name, false, cause);
  look_alone();
  dispatch();
}

async::task<void> Fleet::drain(std::string name, async::Deadline deadline) {
  const Generator* const generator = core::find_value(generators_, name);
  if (generator == nullptr || !generator->up) co_return;
  const std::uint64_t life = generator->life;
  router_.leave(name);
  look_alone();
  dispatch();  // others may have more at a time now
  while (router_.groups(name) > 0 && generators_.at(name).life == life) {
    if (!co_await landed_.wait(deadline)) break;
  }
}

// Treats the generator as lost, because a call to it failed or because it must be restarted.
// Through `restart_` the company starts it again if it has not done so already.
void Fleet::gone(const std::string& name, const core::Error& cause) {
  const std::uint64_t epoch = generators_.at(name).epoch;
  lost(name, cause.message);
  if (restart_) restart_(name, epoch, cause);
}

void Fleet::restart(const std::string& name, const core::Error& cause) {
  ++run_.counts[std::string(kind_.noun) + " restarted"];
  const std::uint64_t life = generators_.at(name).life;
  generators_.at(name).sick = true;
  gone(name, cause);
  if (!restart_) run_.scope->spawn("", come_back(name, life));
}

async::task<void> Fleet::come_back(std::string name, std::uint64_t life) {
  co_await async::sleep_for(*run_.context.timers, limits::kRestartAfter);
  const Generator& generator = generators_.at(name);
  if (!generator.up && generator.life == life) up(name, generator.epoch);
}

std::size_t Fleet::able() const {
  return static_cast<std::size_t>(
      std::count_if(generators_.begin(), generators_.end(), [this](const auto& entry) {
        const Generator& generator = entry.second;
        return generator.up && !generator.sick && !router_.leaves(entry.first) &&
               (generator.holds || generator.misses == 0);
      }));
}

void Fleet::look_alone() {
  if (run_.scope == nullptr) return;
  const bool alone = able() == 0;
  if (alone == is_alone_) return;
  is_alone_ = alone;
  ++alone_;
  if (alone && !kind_.patient) run_.scope->spawn("", wait_for_one(alone_));
}

async::task<core::Result<void>> Fleet::wait_for_one(std::uint64_t alone) {
  co_await async::sleep_for(*run_.context.timers, limits::kGeneratorWait);
  if (alone != alone_) co_return core::Result<void>();
  const std::string wait = std::to_string(limits::kGeneratorWait.count() / 1000);
  // Not kPeerLost: that would rerun from the last checkpoint, as for a lost policy, still without a
  // generator.
  co_return core::fail(
      ErrorCode::kDeadline,
      "no " + std::string(kind_.noun) + " came up within " + wait + " s" +
          (last_cause_.empty() ? "" : " that is able to work (" + last_cause_ + ")"),
      "run the same command again to go on from the last checkpoint");
}

std::vector<GeneratorLine> Fleet::lines() const {
  std::vector<GeneratorLine> all;
  for (const auto& [name, generator] : generators_) {
    const char* const state = !generator.up ? "lost" : generator.holds ? "fresh" : "stale";
    all.push_back({name, state, router_.groups(name), router_.samples(name), generator.holds});
  }
  return all;
}

}  // namespace troupe::actors
