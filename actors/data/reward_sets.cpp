// The order of reward sets.
#include "actors/data/reward_sets.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace troupe::actors {
namespace {

core::Result<void> check_members(const SetRewards& request) {
  const auto refuse = [&](const std::string& why) {
    return core::fail(core::ErrorCode::kInvalidArgument,
                      "reward set " + std::to_string(request.set) + " " + why);
  };
  if (request.members.empty()) return refuse("has no reward");
  if (request.members.size() > core::limits::kRewardMembers_max) {
    return refuse("has more than " + std::to_string(core::limits::kRewardMembers_max) + " rewards");
  }
  std::set<std::string> names;
  for (const RewardMember& member : request.members) {
    if (!names.insert(member.name).second) return refuse("names reward " + member.name + " twice");
    if (!std::isfinite(member.weight)) return refuse("has no finite weight for " + member.name);
  }
  for (const std::string& name : request.lost) {
    if (names.contains(name)) return refuse("holds reward " + name + ", which is lost");
  }
  return {};
}

}  // namespace

std::optional<std::size_t> RewardSet::member(const std::string& name) const {
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].name == name) return i;
  }
  return std::nullopt;
}

RewardSets::RewardSets(std::vector<RewardMember> first)
    : first_(std::make_shared<const RewardSet>(RewardSet{0, 0, std::move(first)})), sets_{first_} {
  TROUPE_CHECK(!first_->members.empty(), "a run has a reward");
}

core::Result<bool> RewardSets::add(const SetRewards& request) {
  TROUPE_TRY(check_members(request));
  const RewardSet set{request.set, request.from_update, request.members};
  for (const RewardSetPtr& known : sets_) {
    if (*known == set) return false;
  }
  if (set.number <= newest()->number) {
    return core::fail(core::ErrorCode::kInvalidArgument,
                      "reward set " + std::to_string(set.number) + " comes after set " +
                          std::to_string(newest()->number));
  }
  sets_.push_back(std::make_shared<const RewardSet>(set));
  for (const std::string& name : request.lost)
    retire(name);
  return true;
}

RewardSetPtr RewardSets::for_update(std::uint64_t update) const {
  for (auto place = sets_.rbegin(); place != sets_.rend(); ++place) {
    if ((*place)->from_update <= update) return *place;
  }
  return *std::min_element(sets_.rbegin(), sets_.rend(), [](const auto& a, const auto& b) {
    return a->from_update < b->from_update;
  });
}

void RewardSets::retire(const std::string& name) {
  const RewardSetPtr last = newest();
  std::erase_if(
      sets_, [&](const RewardSetPtr& set) { return set != last && set->member(name).has_value(); });
}

void RewardSets::forget_before(std::uint64_t update) {
  // What stands before the newest set that holds already can be given to nobody.
  for (std::size_t i = sets_.size(); i-- > 0;) {
    if (sets_[i]->from_update > update) continue;
    sets_.erase(sets_.begin(), sets_.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
}

}  // namespace troupe::actors
