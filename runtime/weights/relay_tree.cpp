#include "runtime/weights/relay_tree.hpp"

#include <algorithm>

namespace troupe::weights {

const RelayEntry* RelayTree::feeder_of(const RelayEntry& one) const {
  const RelayEntry* const parent = one.parent != 0 ? find(one.parent) : nullptr;
  return parent != nullptr && parent->content == one.content ? parent : nullptr;
}

std::size_t RelayTree::level(const RelayEntry& one) const {
  std::size_t steps = 0;
  const RelayEntry* next = &one;
  while (!next->complete() && (next = feeder_of(*next)) != nullptr)
    ++steps;
  return steps;
}

bool RelayTree::is_fed_by(const RelayEntry& one, std::uint32_t number) const {
  const RelayEntry* next = &one;
  for (std::size_t steps = 0; next != nullptr && next->parent != 0 && steps <= entries_.size();
       ++steps) {
    if (next->parent == number) return true;
    next = feeder_of(*next);
  }
  return false;
}

RelayTree::Counts RelayTree::count(const RelayContent& content) const {
  Counts counts;
  for (const auto& [number, entry] : entries_) {
    for (const std::uint32_t relay : entry.wrong)
      ++counts.complaints[relay];
    const bool is_fed = entry.parent != 0 && entry.content == content;
    if (is_fed && !entry.complete() && !entry.reads_other) ++counts.children[entry.parent];
  }
  return counts;
}

std::size_t RelayTree::copies(const RelayContent& content) const {
  return static_cast<std::size_t>(std::count_if(
      entries_.begin(), entries_.end(),
      [&](const auto& one) { return one.second.content == content && one.second.parent == 0; }));
}

std::string RelayTree::check_invariants() const {
  for (const auto& [number, entry] : entries_) {
    const std::string who = "receiver " + std::to_string(number);
    if (entry.place.number != number) return who + " has another number";
    if (entry.parent == number) return who + " is sent to itself";
    if (entry.buckets > entry.content.all) return who + " has more than all";
    const RelayEntry* next = &entry;
    for (std::size_t steps = 0; next != nullptr && !next->complete(); ++steps) {
      if (steps > entries_.size()) return who + " is fed in a circle";
      next = feeder_of(*next);
    }
  }
  return "";
}

}  // namespace troupe::weights
