// Collectives over a device link: how ranks agree on one, and an operation whose bytes go over it.
#include "runtime/collective/call.hpp"
#include "runtime/collective/collectives.hpp"
#include "runtime/collective/link_facts.hpp"

#include <algorithm>
#include <exception>
#include <thread>

namespace troupe::collective {

using core::ErrorCode;
using core::fail;
using std::to_string;

namespace {

// Every rank gets the value of each.
template <class Value>
core::Result<std::vector<Value>> gather_values(Collectives& ranks, const Value& mine) {
  std::vector<Value> all(static_cast<std::size_t>(ranks.size()));
  std::vector<Place> places;
  for (Value& value : all)
    places.push_back({&value, sizeof value});
  TROUPE_TRY(ranks.all_gather({&mine, sizeof mine}, places));
  return all;
}

}  // namespace

core::Result<void> Collectives::use(core::Result<std::unique_ptr<DeviceLink>> given) {
  if (ended_) return fail(*ended_);
  TROUPE_CHECK(!std::exchange(link_tried_, true), "use is called once");
  if (options_.size == 1) return {};
  LinkFacts mine = facts_of(options_);
  if (given) {
    mine.name = FixedText((*given)->name());
    mine.device = FixedText((*given)->device());
  } else {
    mine.why_not = FixedText(given.error().message);
  }
  TROUPE_TRY_ASSIGN(all, gather_values(*this, mine));
  std::string why_not = obstacle_to_link(all);
  if (why_not.empty()) {
    auto formed = form_link(**given, interface_for_link(options_, all));
    if (!formed) return ended_ ? fail(*ended_) : leave(formed.error());
    why_not = std::move(*formed);
  }
  if (why_not.empty()) {
    link_ = std::move(*given);
  } else if (options_.log) {
    options_.log("the devices of " + options_.gang.role + " have no link (" + why_not +
                 "); their bytes go by way of the host");
  }
  return {};
}

// Connects all ends; returns why not, the same on all ranks.
core::Result<std::string> Collectives::form_link(DeviceLink& link, const std::string& interface) {
  struct Invitation {
    LinkId id{};
    FixedText why_not;
  } invitation;
  link.prefer_interface(interface);
  if (options_.rank == 0) {
    const auto id = link.new_id();
    if (id) invitation.id = *id;
    if (!id) invitation.why_not = FixedText(id.error().message);
  }
  TROUPE_TRY(broadcast(0, {&invitation, sizeof invitation}));
  if (!invitation.why_not.empty()) return "rank 0: " + invitation.why_not.text();
  TROUPE_TRY_ASSIGN(mine, connect_link(link, invitation.id));
  if (!mine.why_not.empty()) {
    for (const auto& peer : peers_)
      peer->say_no_link();
    link.abort();
  }
  TROUPE_TRY_ASSIGN(all, gather_values(*this, mine));
  return first_failure(all);
}

// What came of it at this rank. A rank that cannot even begin has failed by itself, whatever it has
// heard of others by then.
core::Result<LinkOutcome> Collectives::connect_link(DeviceLink& link, const LinkId& id) {
  LinkOutcome outcome;
  try {
    if (const auto begun = link.connect(id, options_.rank, size()); !begun) {
      outcome.why_not = FixedText(begun.error().message);
      return outcome;
    }
    TROUPE_TRY_ASSIGN(failure, wait_for_link(link, call_with(core::host_memory())));
    if (!failure) return outcome;
    outcome.why_not = FixedText(failure->message);
  } catch (const std::exception& error) {  // of a device; there is another way for its bytes
    outcome.why_not = FixedText(error.what());
  }
  const auto told = [](const auto& peer) { return peer->without_link(); };
  outcome.heard = std::any_of(peers_.begin(), peers_.end(), told);
  return outcome;
}

// Until what the link has begun is done. An error is one of the gang; a failure is the link's.
core::Result<Collectives::LinkFailure> Collectives::wait_for_link(DeviceLink& link,
                                                                  const Call& call) {
  const core::TimePoint spin = core::steady_clock().now() + limits::kLinkSpin;
  for (;;) {
    const auto done = link.done();
    if (!done) return LinkFailure(done.error());
    if (*done) return LinkFailure();
    TROUPE_TRY(check_not_aborted());
    const bool spins = core::steady_clock().now() < spin;
    hear_peers(spins ? core::Duration::zero() : core::Duration(limits::kLinkLook), {});
    TROUPE_TRY(check_peers(call));
    for (const auto& peer : peers_)
      if (peer->without_link()) return LinkFailure({ErrorCode::kResources, "another rank failed"});
    if (spins) std::this_thread::yield();
  }
}

// All ranks that take part are here, and agree. Afterwards they meet again: a rank that leaves then
// takes nothing away that another one still needs.
core::Result<void> Collectives::move_by_link(Call& call) {
  if (!call.moves.empty()) {
    const auto begun = call.link->start(call.moves);
    if (!begun) return blame(call, begun.error());
    TROUPE_TRY_ASSIGN(failure, wait_for_link(*call.link, call));
    if (failure) return blame(call, *failure);
  }
  for (Transfer& transfer : call.transfers)
    transfer.meet_again(Way::kLinkDone);
  return move_all(call);
}

// Why the link failed: the loss of a rank, if there is one, which the link may have noticed first.
core::Result<void> Collectives::blame(const Call& call, const core::Error& failure) {
  const core::TimePoint end = core::steady_clock().now() + limits::kLinkBlame;
  for (core::Duration left = limits::kLinkBlame; left > core::Duration::zero();
       left = end - core::steady_clock().now()) {
    hear_peers(left, {});
    TROUPE_TRY(check_not_aborted());
    TROUPE_TRY(check_peers(call));
  }
  return fail(ErrorCode::kPeerLost, "rank " + to_string(options_.rank) + " of " +
                                        options_.gang.role + ": " + failure.message);
}

}  // namespace troupe::collective
