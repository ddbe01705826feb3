#include "runtime/collective/link_forming.hpp"

#include "runtime/collective/call.hpp"
#include "runtime/collective/link_facts.hpp"

#include <exception>

namespace troupe::collective {
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

// What came of it at this rank. A rank that cannot even begin has failed by itself, whatever it has
// heard of others by then.
core::Result<LinkOutcome> connect_link(DeviceLink& link,
                                       RankPeers& peers,
                                       const RankOptions& options,
                                       const LinkId& id) {
  LinkOutcome outcome;
  try {
    if (const auto begun = link.connect(id, options.rank, options.size); !begun) {
      outcome.why_not = begun.error().message;
      return outcome;
    }
    const auto all_are_there = [&] { return peers.check([](const Peer&) { return false; }); };
    TROUPE_TRY_ASSIGN(failure, wait_for_link(link, peers, all_are_there));
    if (!failure) return outcome;
    outcome.why_not = failure->message;
  } catch (const std::exception& error) {  // of a device; there is another way for its bytes
    outcome.why_not = error.what();
  }
  outcome.heard = peers.one_is_without_link();
  return outcome;
}

// Rank 0 makes up what all need to connect.
core::Result<std::string> connect_ends(Collectives& ranks,
                                       RankPeers& peers,
                                       const RankOptions& options,
                                       DeviceLink& link) {
  struct Invitation {
    LinkId id{};
    FixedText why_not;
  } invitation;
  if (options.rank == 0) {
    const auto id = link.new_id();
    if (id) invitation.id = *id;
    if (!id) invitation.why_not = id.error().message;
  }
  TROUPE_TRY(ranks.broadcast(0, {&invitation, sizeof invitation}));
  if (!invitation.why_not.empty()) return "rank 0: " + invitation.why_not.text();
  TROUPE_TRY_ASSIGN(mine, connect_link(link, peers, options, invitation.id));
  if (!mine.why_not.empty()) {
    for (const auto& peer : peers.all())
      peer->say_no_link();
    link.abort();
  }
  TROUPE_TRY_ASSIGN(all, gather_values(ranks, mine));
  return first_failure(all);
}

}  // namespace

core::Result<std::string> form_link(Collectives& ranks,
                                    RankPeers& peers,
                                    const RankOptions& options,
                                    const core::Result<std::unique_ptr<DeviceLink>>& given) {
  LinkFacts mine = facts_of(options);
  if (given) {
    mine.name = (*given)->name();
    mine.device = (*given)->device();
  } else {
    mine.why_not = given.error().message;
  }
  TROUPE_TRY_ASSIGN(all, gather_values(ranks, mine));
  std::string why_not = obstacle_to_link(all);
  if (!why_not.empty()) return why_not;
  (*given)->prefer_interface(interface_for_link(options, all));
  return connect_ends(ranks, peers, options, **given);
}

}  // namespace troupe::collective
