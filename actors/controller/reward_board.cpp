#include "actors/controller/reward_board.hpp"

#include "actors/formula/reward_formula.hpp"
#include "runtime/config/reward_names.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::actors::controller {
namespace {

core::Failure refuse(std::string why, std::string_view advice = {}) {
  return core::fail(core::ErrorCode::kInvalidArgument, std::move(why), advice);
}

RewardMember* named(std::vector<RewardMember>& members, const std::string& name) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&name](const auto& member) { return member.name == name; });
  return found == members.end() ? nullptr : &*found;
}

core::Result<void> check_weight(const std::string& name, double weight) {
  if (std::isfinite(weight) && weight != 0) return {};
  return refuse("the weight of reward '" + name + "' is " + std::to_string(weight),
                "give a finite number other than 0, or detach the reward");
}

}  // namespace

RewardBoard::RewardBoard(std::vector<RewardMember> own,
                         const std::vector<SetRewards>& earlier,
                         std::string formula)
    : members_(std::move(own)), formula_(std::move(formula)) {
  if (earlier.empty()) return;
  std::set<std::string> known;
  for (const auto& member : members_)
    known.insert(member.name + " " + member.peer);
  set_ = earlier.back().set;
  members_ = earlier.back().members;
  formula_ = earlier.back().formula;
  for (const auto& member : members_) {
    if (!known.contains(member.name + " " + member.peer)) attached_.insert(member.name);
  }
  absent_ = attached_;
}

bool RewardBoard::came(const std::string& name, const std::string& peer) {
  const RewardMember* const member = named(members_, name);
  if (member == nullptr || member->peer != peer) return false;
  return absent_.erase(name) > 0;
}

core::Result<RewardMember*> RewardBoard::member(const std::string& name) {
  if (RewardMember* const found = named(members_, name)) return found;
  std::string all;
  for (const auto& member : members_)
    all += (all.empty() ? "" : ", ") + member.name;
  return refuse("there is no reward '" + name + "'",
                "attached are: " + (all.empty() ? "none" : all));
}

bool RewardBoard::fits() const {
  const auto formula = formula::RewardFormula::parse(formula_);
  return formula && formula->check(members_);
}

core::Result<std::string> RewardBoard::formula_for(const std::vector<RewardMember>& members,
                                                   const std::string& wanted) const {
  std::string formula = wanted.empty() ? formula_ : wanted;
  TROUPE_TRY_ASSIGN(parsed, formula::RewardFormula::parse(formula));
  auto fit = parsed.check(members);
  if (fit) return formula;
  if (!wanted.empty()) return fit.failure();
  return core::fail(core::ErrorCode::kConfig, fit.error().message,
                    "give one that fits with --formula, as in `troupe re-weight reward`");
}

core::Result<void> RewardBoard::attach(const AttachReward& request) {
  if (request.name.empty() || request.peer.empty()) {
    return refuse("a reward is attached with a name and the role that gives it");
  }
  if (const std::string why = config::attached_name_fault(request.name); !why.empty()) {
    return refuse(why, "choose another --name");
  }
  if (named(members_, request.name) != nullptr) {
    return refuse("a reward '" + request.name + "' is attached already",
                  "choose another --name, or re-weight or detach that one");
  }
  if (named(draining_, request.name) != nullptr) {
    return refuse("reward '" + request.name + "' still scores its last groups",
                  "wait for its detach to answer, or choose another --name");
  }
  TROUPE_TRY(check_weight(request.name, request.weight));
  std::vector<RewardMember> members = members_;
  members.push_back({request.name, request.peer, request.weight});
  TROUPE_TRY_SET(formula_, formula_for(members, request.formula));
  members_ = std::move(members);
  attached_.insert(request.name);
  ++set_;
  return {};
}

core::Result<void> RewardBoard::reweight(const ReweightReward& request) {
  RewardMember* changed = nullptr;
  if (!request.name.empty()) {
    TROUPE_TRY_SET(changed, member(request.name));
    TROUPE_TRY(check_weight(request.name, request.weight));
  } else if (request.formula.empty()) {
    return refuse("nothing changes", "give a reward and its weight, or a formula");
  }
  TROUPE_TRY_SET(formula_, formula_for(members_, request.formula));
  if (changed != nullptr) changed->weight = request.weight;
  ++set_;
  return {};
}

core::Result<void> RewardBoard::detach(const DetachReward& request) {
  TROUPE_TRY_ASSIGN(member, this->member(request.name));
  if (members_.size() == 1) {
    return refuse("'" + request.name + "' is the run's last reward",
                  "attach another one before it is detached");
  }
  std::vector<RewardMember> members = members_;
  members.erase(members.begin() + (member - members_.data()));
  TROUPE_TRY(formula_for(members));
  draining_.push_back(*member);
  members_ = std::move(members);
  ++set_;
  return {};
}

bool RewardBoard::is_attached(const std::string& peer) const {
  const auto at_peer = [this, &peer](const RewardMember& member) {
    return member.peer == peer && attached_.contains(member.name);
  };
  return std::any_of(members_.begin(), members_.end(), at_peer) ||
         std::any_of(draining_.begin(), draining_.end(), at_peer);
}

bool RewardBoard::lose(const std::string& peer) {
  if (!is_attached(peer)) return false;
  const auto take = [this, &peer](std::vector<RewardMember>& from) {
    for (const auto& member : from) {
      if (member.peer == peer) lost_.push_back(member.name);
    }
    std::erase_if(from, [&peer](const auto& member) { return member.peer == peer; });
  };
  take(members_);
  take(draining_);
  for (const auto& name : lost_) {
    attached_.erase(name);
    absent_.erase(name);
  }
  ++set_;
  return true;
}

void RewardBoard::drained(const std::string& name) {
  std::erase_if(draining_, [&name](const auto& member) { return member.name == name; });
  // One that was lost while it drained may be attached again.
  if (named(members_, name) == nullptr) attached_.erase(name);
}

void RewardBoard::forgo(const std::string& name) {
  drained(name);
  absent_.erase(name);
  lost_.push_back(name);
}

SetRewards RewardBoard::change(std::uint64_t from_update) const {
  return {set_, from_update, members_, lost_, formula_};
}

}  // namespace troupe::actors::controller
