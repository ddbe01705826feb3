#include "runtime/weights/relay_book.hpp"

#include "runtime/core/checked_change.hpp"
#include "runtime/weights/limits.hpp"

#include <algorithm>
#include <tuple>

namespace troupe::weights {
namespace {

// Receivers that got wrong bytes from a relay before it is avoided.
constexpr std::size_t kComplaints = 2;

// A relay that lends its memory gives nothing until it has all.
bool withholds(const RelayEntry& relay, const RelayEntry& asker, const RelayBook::Ask& ask) {
  if (ask.fault == RelayFault::kSilent && asker.reads_other) return false;
  return ask.fault != RelayFault::kSlow && relay.buckets > ask.buckets;
}

RelayPlace go_to(RelayEntry& asker, const RelayEntry& relay) {
  asker.parent = relay.place.number;
  asker.reads_other = relay.is_near(asker);
  RelayPlace place = relay.place;
  if (asker.reads_other) place.address = "";
  if (!asker.reads_other) place.socket = "";
  return place;
}

}  // namespace

RelayEntry& RelayBook::enter(const Ask& ask, core::TimePoint now) {
  RelayEntry& entry = tree_.of(ask.place.number);
  if (entry.content != ask.content) {
    entry.parent = 0;
    entry.suspected = entry.reads_other = false;
    entry.slow.clear();
  }
  if (entry.content != ask.content || entry.buckets != ask.buckets) entry.moved = now;
  entry.place = ask.place;
  entry.host = ask.host;
  entry.turn = ask.turn;
  entry.content = ask.content;
  entry.buckets = ask.buckets;
  return entry;
}

std::optional<RelayPlace> RelayBook::choose(const Ask& asked, core::TimePoint now) {
  const core::CheckedChange checked(*this);
  if (asked.place.number == 0) return std::nullopt;
  Ask ask = asked;
  if (has_moved_on(ask)) {
    ask.avoid = 0;
    ask.fault = RelayFault::kNone;
  }
  RelayEntry& asker = enter(ask, now);
  note_fault(asker, ask);
  if (!ask.direct) {
    const bool keeps = keeps_silent_one(asker, ask, now);
    const bool waits = keeps && asker.reads_other;  // for memory, which is lent when it is whole
    const RelayEntry* const found = waits ? nullptr : find_parent(asker, ask);
    if (found != nullptr && ask.fault == RelayFault::kSlow) asker.slow.push_back(ask.avoid);
    if (found != nullptr) return go_to(asker, *found);
    if (keeps) return go_to(asker, *tree_.find(ask.avoid));
  }
  asker.parent = 0;
  asker.reads_other = false;
  return std::nullopt;
}

// The publisher has a newer version than the one that the asker gets from a relay. Unless that gave
// wrong bytes it is not to blame in the newer one, for which it may have ended the older: the asker
// begins as all others do.
bool RelayBook::has_moved_on(const Ask& ask) const {
  const RelayEntry* const asker = tree_.find(ask.place.number);
  const bool wrong = ask.fault == RelayFault::kWrong;
  return !wrong && asker != nullptr && asker->content != ask.content;
}

void RelayBook::note_fault(RelayEntry& asker, const Ask& ask) {
  if (ask.avoid == 0) return;
  asker.parent = ask.avoid;  // so that it does not count as a copy of the publisher's
  if (ask.fault == RelayFault::kWrong &&
      std::find(asker.wrong.begin(), asker.wrong.end(), ask.avoid) == asker.wrong.end()) {
    if (asker.wrong.size() >= limits::kRelaysAvoided_max) asker.wrong.erase(asker.wrong.begin());
    asker.wrong.push_back(ask.avoid);
  }
  RelayEntry* const relay = tree_.find(ask.avoid);
  if (relay == nullptr || relay->content != ask.content) return;
  if (ask.fault == RelayFault::kLost || withholds(*relay, asker, ask)) relay->suspected = true;
}

// The best relay for the asker, or null: the publisher, or the relay that it has.
const RelayEntry* RelayBook::find_parent(const RelayEntry& asker, const Ask& ask) const {
  const std::size_t others = tree_.copies(ask.content) - (asker.parent == 0 ? 1 : 0);
  const bool copy_is_free = ask.avoid == 0 && others < limits::kWeightCopies_max;
  RelayTree::Counts counts = tree_.count(ask.content);
  const RelayEntry* best = nullptr;
  std::tuple<bool, std::size_t, std::size_t, std::uint32_t, std::uint64_t> best_rank;
  for (const auto& [number, relay] : tree_.all()) {
    if (!may_feed(relay, asker, ask, counts)) continue;
    const bool same_host = relay.is_near(asker);
    const std::size_t fed = same_host ? 0 : counts.children[number];
    if (!same_host && (relay.place.address.empty() || fed >= limits::kRelayChildren_max)) continue;
    if (!same_host && copy_is_free) continue;
    if (ask.fault == RelayFault::kSlow && !is_better(relay, asker, ask, counts)) continue;
    const std::tuple rank{!same_host, tree_.level(relay), fed, relay.content.all - relay.buckets,
                          relay.turn};
    if (best != nullptr && best_rank <= rank) continue;
    best = &relay;
    best_rank = rank;
  }
  return best;
}

bool RelayBook::may_feed(const RelayEntry& relay,
                         const RelayEntry& asker,
                         const Ask& ask,
                         RelayTree::Counts& counts) const {
  const std::uint32_t number = relay.place.number;
  if (&relay == &asker || relay.content != asker.content) return false;
  if (relay.suspected || relay.reads_other) return false;
  if (number == ask.avoid || counts.complaints[number] >= kComplaints) return false;
  if (std::find(asker.wrong.begin(), asker.wrong.end(), number) != asker.wrong.end()) return false;
  if (std::find(asker.slow.begin(), asker.slow.end(), number) != asker.slow.end()) return false;
  const bool has_enough = ask.avoid != 0 ? relay.buckets > asker.buckets || relay.complete()
                                         : relay.buckets >= asker.buckets;
  return has_enough && !tree_.is_fed_by(relay, asker.place.number);
}

// A relay that works is kept if there is no better one. A silent one that holds nothing back and
// gets buckets itself is only slow.
bool RelayBook::keeps_silent_one(const RelayEntry& asker,
                                 const Ask& ask,
                                 core::TimePoint now) const {
  const RelayEntry* const relay = tree_.find(ask.avoid);
  if (relay == nullptr || relay->content != ask.content) return false;
  if (ask.fault == RelayFault::kSlow) return true;
  if (ask.fault != RelayFault::kSilent) return false;
  return !relay->suspected && !relay->reads_other && !withholds(*relay, asker, ask) &&
         now - relay->moved < limits::kRelayStuck;
}

// Whether the asker should leave a relay that works for this one. It does not come back to the old
// one, so it moves at most once for each relay that there is.
bool RelayBook::is_better(const RelayEntry& relay,
                          const RelayEntry& asker,
                          const Ask& ask,
                          RelayTree::Counts& counts) const {
  constexpr std::uint32_t kParts = 8;
  const bool far_ahead =
      relay.complete() || relay.buckets > asker.buckets + relay.content.all / kParts;
  if (!far_ahead || (relay.is_near(asker) && !relay.complete())) return false;
  const RelayEntry* const parent = tree_.find(ask.avoid);
  if (parent == nullptr) return true;
  const bool starves = parent->buckets <= asker.buckets + 1 && !parent->complete();
  return starves || counts.children[relay.place.number] < counts.children[ask.avoid];
}

void RelayBook::progress(std::uint32_t number, std::uint32_t buckets, core::TimePoint now) {
  const core::CheckedChange checked(*this);
  RelayEntry* const entry = tree_.find(number);
  if (entry == nullptr || buckets <= entry->buckets) return;
  entry->buckets = std::min(buckets, entry->content.all);
  entry->moved = now;
}

void RelayBook::leave(std::uint32_t number, std::uint64_t turn) {
  const core::CheckedChange checked(*this);
  const RelayEntry* const found = tree_.find(number);
  if (found != nullptr && found->turn == turn) tree_.erase(number);
}

bool RelayBook::is_set_aside(std::uint32_t number) const {
  return tree_.count({}).complaints[number] >= kComplaints;
}

}  // namespace troupe::weights
