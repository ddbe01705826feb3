#include "actors/data/book_groups.hpp"

#include <algorithm>

namespace troupe::actors::data {

std::vector<const BookGroup*> BookGroups::groups_of(std::uint64_t update) const {
  std::vector<const BookGroup*> found;
  for (auto place = groups_.lower_bound({update, 0});
       place != groups_.end() && place->first.first == update; ++place) {
    found.push_back(&place->second);
  }
  return found;
}

std::vector<const BookGroup*> BookGroups::groups() const {
  std::vector<const BookGroup*> all;
  for (const auto& [slot, group] : groups_)
    all.push_back(&group);
  return all;
}

bool BookGroups::any_failed(std::uint64_t update) const {
  const auto groups = groups_of(update);
  return std::any_of(groups.begin(), groups.end(),
                     [](const BookGroup* group) { return group->state == GroupState::kFailed; });
}

bool BookGroups::ready(std::uint64_t update) const {
  return settled(update) && !any_failed(update);
}

bool BookGroups::settled(std::uint64_t update) const {
  const auto groups = groups_of(update);
  return !groups.empty() && std::all_of(groups.begin(), groups.end(), [](const BookGroup* group) {
    return group->state == GroupState::kReady || group->state == GroupState::kFailed;
  });
}

bool BookGroups::waits_for(const std::string& reward) const {
  return std::any_of(groups_.begin(), groups_.end(),
                     [&](const auto& entry) { return waits(entry.second, reward); });
}

bool BookGroups::waits_for(const experience::Ticket& ticket, std::size_t member) const {
  const BookGroup* group = find(ticket);
  return group != nullptr && is_open(*group) && member < group->scored.size() &&
         !group->scored[member];
}

std::uint64_t BookGroups::oldest_update() const noexcept {
  return groups_.empty() ? next_update_ : groups_.begin()->first.first;
}

}  // namespace troupe::actors::data
