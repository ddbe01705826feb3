#include "runtime/weights/relay_book.hpp"

#include "runtime/weights/limits.hpp"

#include <algorithm>
#include <tuple>

namespace troupe::weights {
namespace {

// Receivers that got wrong bytes from a relay until nobody is sent to it.
constexpr std::size_t kComplaints = 2;

}  // namespace

RelayBook::Entry& RelayBook::enter(const Ask& ask, core::TimePoint now) {
  Entry& entry = entries_[ask.place.number];
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
  if (asked.place.number == 0) return std::nullopt;
  Ask ask = asked;
  if (has_moved_on(ask)) {
    ask.avoid = 0;
    ask.fault = RelayFault::kNone;
  }
  Entry& asker = enter(ask, now);
  note_fault(asker, ask);
  if (!ask.direct) {
    const bool keeps = keeps_silent_one(asker, ask, now);
    const bool waits = keeps && asker.reads_other;  // for memory, which is lent when it is whole
    const Entry* const found = waits ? nullptr : find_parent(asker, ask);
    if (found != nullptr && ask.fault == RelayFault::kSlow) asker.slow.push_back(ask.avoid);
    if (found != nullptr) return go_to(asker, *found);
    if (keeps) return go_to(asker, entries_.at(ask.avoid));
  }
  asker.parent = 0;
  asker.reads_other = false;
  return std::nullopt;
}

// The publisher has a newer version than the one that the asker gets from a relay. Unless that gave
// wrong bytes it is not to blame in the newer one, for which it may have ended the older: the asker
// begins as all others do.
bool RelayBook::has_moved_on(const Ask& ask) const {
  const auto asker = entries_.find(ask.place.number);
  const bool wrong = ask.fault == RelayFault::kWrong;
  return !wrong && asker != entries_.end() && asker->second.content != ask.content;
}

std::optional<RelayPlace> RelayBook::go_to(Entry& asker, const Entry& relay) const {
  const bool same_host = is_near(relay, asker);
  asker.parent = relay.place.number;
  asker.reads_other = same_host;
  RelayPlace place = relay.place;
  if (same_host) {
    place.address[0] = 0;
  } else {
    place.socket[0] = 0;
  }
  return place;
}

bool RelayBook::is_near(const Entry& relay, const Entry& asker) {
  return relay.host == asker.host && relay.place.socket[0] != 0;
}

void RelayBook::note_fault(Entry& asker, const Ask& ask) {
  if (ask.avoid == 0) return;
  asker.parent = ask.avoid;  // so that it does not count as a copy of the publisher's
  if (ask.fault == RelayFault::kWrong &&
      std::find(asker.wrong.begin(), asker.wrong.end(), ask.avoid) == asker.wrong.end()) {
    if (asker.wrong.size() >= limits::kRelaysAvoided_max) asker.wrong.erase(asker.wrong.begin());
    asker.wrong.push_back(ask.avoid);
  }
  const auto relay = entries_.find(ask.avoid);
  if (relay == entries_.end() || relay->second.content != ask.content) return;
  if (ask.fault == RelayFault::kLost || withholds(relay->second, asker, ask))
    relay->second.suspected = true;
}

// The best relay for the asker, or null: the publisher, or the relay that it has.
const RelayBook::Entry* RelayBook::find_parent(const Entry& asker, const Ask& ask) const {
  const std::size_t others = copies(ask.content) - (asker.parent == 0 ? 1 : 0);
  const bool copy_is_free = ask.avoid == 0 && others < limits::kWeightCopies_max;
  Counts counts = count(ask.content);
  const Entry* best = nullptr;
  std::tuple<bool, std::size_t, std::size_t, std::uint32_t, std::uint64_t> best_rank;
  for (const auto& [number, relay] : entries_) {
    if (!may_feed(relay, asker, ask, counts)) continue;
    const bool same_host = is_near(relay, asker);
    const std::size_t fed = same_host ? 0 : counts.children[number];
    if (!same_host && (relay.place.address[0] == 0 || fed >= limits::kRelayChildren_max)) continue;
    if (!same_host && copy_is_free) continue;
    if (ask.fault == RelayFault::kSlow && !is_better(relay, asker, ask, counts)) continue;
    const std::tuple rank{!same_host, level(relay), fed, relay.content.all - relay.buckets,
                          relay.turn};
    if (best != nullptr && best_rank <= rank) continue;
    best = &relay;
    best_rank = rank;
  }
  return best;
}

bool RelayBook::may_feed(const Entry& relay,
                         const Entry& asker,
                         const Ask& ask,
                         Counts& counts) const {
  const std::uint32_t number = relay.place.number;
  if (&relay == &asker || relay.content != asker.content) return false;
  if (relay.suspected || relay.reads_other) return false;
  if (number == ask.avoid || counts.complaints[number] >= kComplaints) return false;
  if (std::find(asker.wrong.begin(), asker.wrong.end(), number) != asker.wrong.end()) return false;
  if (std::find(asker.slow.begin(), asker.slow.end(), number) != asker.slow.end()) return false;
  const bool has_enough = ask.avoid != 0 ? relay.buckets > asker.buckets || relay.complete()
                                         : relay.buckets >= asker.buckets;
  return has_enough && !is_fed_by(relay, asker.place.number);
}

// A relay that lends its memory gives nothing until it has all.
bool RelayBook::withholds(const Entry& relay, const Entry& asker, const Ask& ask) {
  if (ask.fault == RelayFault::kSilent && asker.reads_other) return false;
  return ask.fault != RelayFault::kSlow && relay.buckets > ask.buckets;
}

// A relay that works is kept if there is no better one. A silent one that holds nothing back and
// gets buckets itself is only slow.
bool RelayBook::keeps_silent_one(const Entry& asker, const Ask& ask, core::TimePoint now) const {
  const auto found = entries_.find(ask.avoid);
  if (found == entries_.end() || found->second.content != ask.content) return false;
  const Entry& relay = found->second;
  if (ask.fault == RelayFault::kSlow) return true;
  if (ask.fault != RelayFault::kSilent) return false;
  return !relay.suspected && !relay.reads_other && !withholds(relay, asker, ask) &&
         now - relay.moved < limits::kRelayStuck;
}

// Whether the asker should leave a relay that works for this one. It does not come back to the old
// one, so it moves at most once for each relay that there is.
bool RelayBook::is_better(const Entry& relay,
                          const Entry& asker,
                          const Ask& ask,
                          Counts& counts) const {
  constexpr std::uint32_t kParts = 8;
  const bool far_ahead =
      relay.complete() || relay.buckets > asker.buckets + relay.content.all / kParts;
  if (!far_ahead || (is_near(relay, asker) && !relay.complete())) return false;
  const auto parent = entries_.find(ask.avoid);
  if (parent == entries_.end()) return true;
  const bool starves = parent->second.buckets <= asker.buckets + 1 && !parent->second.complete();
  return starves || counts.children[relay.place.number] < counts.children[ask.avoid];
}

// How many relays its buckets pass until they come from a whole copy.
std::size_t RelayBook::level(const Entry& one) const {
  std::size_t steps = 0;
  for (const Entry* next = &one; !next->complete() && next->parent != 0; ++steps) {
    const auto parent = entries_.find(next->parent);
    if (parent == entries_.end() || parent->second.content != one.content) break;
    next = &parent->second;
  }
  return steps;
}

bool RelayBook::is_fed_by(const Entry& one, std::uint32_t number) const {
  const Entry* next = &one;
  for (std::size_t steps = 0; steps <= entries_.size() && next->parent != 0; ++steps) {
    if (next->parent == number) return true;
    const auto parent = entries_.find(next->parent);
    if (parent == entries_.end() || parent->second.content != one.content) return false;
    next = &parent->second;
  }
  return false;
}

RelayBook::Counts RelayBook::count(const RelayContent& content) const {
  Counts counts;
  for (const auto& [number, entry] : entries_) {
    for (const std::uint32_t relay : entry.wrong)
      ++counts.complaints[relay];
    const bool is_fed = entry.parent != 0 && entry.content == content;
    if (is_fed && !entry.complete() && !entry.reads_other) ++counts.children[entry.parent];
  }
  return counts;
}

void RelayBook::progress(std::uint32_t number, std::uint32_t buckets, core::TimePoint now) {
  const auto found = entries_.find(number);
  if (found == entries_.end() || buckets <= found->second.buckets) return;
  Entry& entry = found->second;
  entry.buckets = std::min(buckets, entry.content.all);
  entry.moved = now;
}

void RelayBook::leave(std::uint32_t number, std::uint64_t turn) {
  const auto found = entries_.find(number);
  if (found != entries_.end() && found->second.turn == turn) entries_.erase(found);
}

std::size_t RelayBook::copies(const RelayContent& content) const {
  return static_cast<std::size_t>(std::count_if(
      entries_.begin(), entries_.end(),
      [&](const auto& one) { return one.second.content == content && one.second.parent == 0; }));
}

bool RelayBook::is_set_aside(std::uint32_t number) const {
  return count({}).complaints[number] >= kComplaints;
}

}  // namespace troupe::weights
