#include "actors/data/reward_sets.hpp"

#include "actors/data/limits.hpp"
#include "runtime/core/check.hpp"

#include <cmath>
#include <set>
#include <utility>

namespace troupe::actors::data {
namespace {

core::Result<void> check_members(const SetRewards& request, bool may_be_empty) {
  const auto refuse = [&](const std::string& why) {
    return core::fail(core::ErrorCode::kInvalidArgument,
                      "reward set " + std::to_string(request.set) + " " + why);
  };
  if (request.members.empty() && !may_be_empty) return refuse("has no reward");
  if (request.members.size() > limits::kRewardMembers_max) {
    return refuse("has more than " + std::to_string(limits::kRewardMembers_max) + " rewards");
  }
  std::set<std::string> names;
  for (const RewardMember& member : request.members) {
    if (!names.insert(member.name).second) return refuse("names reward " + member.name + " twice");
    if (!std::isfinite(member.weight)) return refuse("has no finite weight for " + member.name);
  }
  for (const std::string& name : request.lost) {
    if (names.contains(name)) return refuse("holds reward " + name + ", which is lost");
  }
  TROUPE_TRY_ASSIGN(formula, formula::RewardFormula::parse(request.formula));
  return formula.check(request.members);
}

}  // namespace

RewardSet::RewardSet(std::uint64_t number_,
                     std::uint64_t from_update_,
                     std::vector<RewardMember> members_,
                     std::string formula_)
    : number(number_),
      from_update(from_update_),
      members(std::move(members_)),
      formula(std::move(formula_)),
      parsed(formula::RewardFormula::parse(formula)) {}

std::optional<std::size_t> RewardSet::member(const std::string& name) const {
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].name == name) return i;
  }
  return std::nullopt;
}

RewardSets::RewardSets(std::vector<RewardMember> first,
                       std::string formula,
                       const std::vector<HeldOutRewards>& held_out)
    : first_(std::make_shared<const RewardSet>(0, 0, std::move(first), std::move(formula))),
      sets_{{first_, false}} {
  std::uint64_t end = 0;
  for (const HeldOutRewards& one : held_out) {
    end += one.prompts;
    const std::uint64_t number = kHeldOut_first + held_out_.size();
    held_out_.emplace_back(end, one.members.empty() ? first_
                                                    : std::make_shared<const RewardSet>(
                                                          number, 0, one.members, one.formula));
  }
}

RewardSetPtr RewardSets::held_out(std::uint64_t place) const {
  for (const auto& [end, set] : held_out_)
    if (place < end) return set;
  return first_;
}

core::Result<bool> RewardSets::add(const SetRewards& request) {
  TROUPE_TRY(check_members(request, first_->members.empty()));
  const RewardSet set{request.set, request.from_update, request.members, request.formula};
  for (const Entry& known : sets_) {
    if (*known.set == set) return false;
  }
  if (set.number <= newest()->number) {
    return core::fail(core::ErrorCode::kInvalidArgument,
                      "reward set " + std::to_string(set.number) + " comes after set " +
                          std::to_string(newest()->number));
  }
  sets_.push_back({std::make_shared<const RewardSet>(set), false});
  for (const std::string& name : request.lost)
    retire(name);
  return true;
}

core::Result<void> RewardSets::restore(const std::vector<SetRewards>& earlier) {
  for (const SetRewards& set : earlier) {
    TROUPE_TRY(add(set));
  }
  for (Entry& entry : sets_) {
    for (const RewardMember& member : entry.set->members) {
      if (!newest()->member(member.name)) entry.retired = true;
    }
  }
  return {};
}

std::vector<SetRewards> RewardSets::added() const {
  std::vector<SetRewards> all;
  for (const Entry& entry : sets_) {
    if (entry.set == first_) continue;
    all.push_back(
        {entry.set->number, entry.set->from_update, entry.set->members, {}, entry.set->formula});
  }
  return all;
}

std::size_t RewardSets::in_force(std::uint64_t update) const {
  std::size_t place = sets_.size() - 1;
  while (place > 0 && sets_[place].set->from_update > update)
    --place;
  return place;
}

RewardSetPtr RewardSets::for_update(std::uint64_t update) const {
  std::size_t place = in_force(update);
  while (sets_[place].retired)
    ++place;
  return sets_[place].set;
}

RewardSetPtr RewardSets::numbered(std::uint64_t number) const {
  if (number == first_->number) return first_;
  for (const auto& [end, set] : held_out_)
    if (set->number == number) return set;
  for (const Entry& entry : sets_) {
    if (entry.set->number == number) return entry.set;
  }
  return nullptr;
}

void RewardSets::retire(const std::string& name) {
  TROUPE_CHECK(!newest()->member(name), "the newest reward set stays");
  for (Entry& entry : sets_) {
    if (entry.set->member(name)) entry.retired = true;
  }
}

void RewardSets::forget_before(std::uint64_t update) {
  // No later group can get a set before the newest one that already holds.
  sets_.erase(sets_.begin(), sets_.begin() + static_cast<std::ptrdiff_t>(in_force(update)));
}

}  // namespace troupe::actors::data
