#include "actors/company/membership.hpp"

#include "actors/company/limits.hpp"
#include "actors/controller/limits.hpp"
#include "actors/protocol/limits.hpp"

#include <algorithm>

namespace troupe::actors::company {

bool offers(const Join& join, const char* kind) {
  return std::find(join.roles.begin(), join.roles.end(), kind) != join.roles.end();
}

core::Result<void> Membership::join(const Join& join, core::TimePoint now) {
  if (members_.contains(join.name)) {
    return core::fail(core::ErrorCode::kInvalidArgument, join.name + " is in already");
  }
  if (join.build != build_) {
    return core::fail(core::ErrorCode::kUnsupported,
                      join.name + " runs troupe " + join.build + ", this company troupe " + build_,
                      "install the same version on both hosts");
  }
  if (join.arithmetic != arithmetic_) {
    return core::fail(core::ErrorCode::kUnsupported,
                      join.name + " computes in class " + join.arithmetic +
                          ", this company in class " + arithmetic_ +
                          ": their log-probs would differ",
                      "see with `troupe doctor` which of the two computes differently");
  }
  if (members_.size() >= actors::limits::kNodes_max) {
    return core::fail(
        core::ErrorCode::kOverloaded,
        "the company has " + std::to_string(actors::limits::kNodes_max) + " nodes already");
  }
  members_.emplace(join.name, Member{join, now, now, now});
  return {};
}

bool Membership::beat(const Beat& beat, core::TimePoint now) {
  Member* const member = core::find_value(members_, beat.node);
  if (member == nullptr || member->health == NodeHealth::kFrozen) return false;
  member->last_beat = now;
  member->figures.take(beat, now);
  return true;
}

std::vector<Membership::Change> Membership::look(core::TimePoint now, const Traffic& traffic) {
  const auto late =
      last_look_ ? (now - *last_look_) - controller::limits::kLookEvery : core::Duration::zero();
  last_look_ = now;
  std::vector<Change> changes;
  for (auto& [name, member] : members_) {
    if (late > controller::limits::kLookEvery)
      member.last_beat = std::min(member.last_beat + late, now);
    const auto bytes = traffic ? traffic(name) : std::nullopt;
    const core::TimePoint latest =
        std::min(bytes.value_or(member.last_beat), member.last_beat + limits::kTrafficLife);
    member.last_heard = std::max(member.last_beat, latest);
    const core::Duration silent = now - member.last_heard;
    NodeHealth health = NodeHealth::kAlive;
    if (silent >= limits::kSuspectAfter) health = NodeHealth::kSuspect;
    if (silent >= limits::kFrozenAfter) health = NodeHealth::kFrozen;
    if (health == member.health || member.health == NodeHealth::kFrozen) continue;
    member.health = health;
    changes.push_back({name, health, std::chrono::duration<double>(silent).count()});
  }
  return changes;
}

}  // namespace troupe::actors::company
