#include "actors/company/gang_meetings.hpp"

#include "runtime/core/find_value.hpp"
#include "runtime/core/secret.hpp"

namespace troupe::actors::company {

namespace {
constexpr std::size_t kGangKey_bytes = 32;
}

core::Result<void> GangMeetings::come(const PlacedRole& rank, const MeetGang& request) {
  Meeting& meeting = meetings_[rank.gang];
  if (meeting.epoch != rank.epoch) {
    meeting = {};
    meeting.epoch = rank.epoch;
    meeting.key = core::random_hex(kGangKey_bytes);
  }
  for (const auto& [number, other] : meeting.ranks) {
    if (other.arithmetic == request.arithmetic) continue;
    return core::fail(
        core::ErrorCode::kUnsupported,
        rank.name + " computes in class " + request.arithmetic + ", " + other.role + " in class " +
            other.arithmetic + ": ranks of " + rank.gang +
            " with different bits cannot share its work",
        "install one build on all hosts, or give the ranks devices of one kind with --" +
            (rank.gang == "policy" ? "actor" : rank.gang) + ".device");
  }
  meeting.ranks.insert_or_assign(rank.rank, request);
  return {};
}

std::optional<GangMet> GangMeetings::met(const PlacedRole& rank) const {
  const Meeting* const meeting = core::find_value(meetings_, rank.gang);
  const bool all =
      meeting != nullptr && meeting->epoch == rank.epoch && meeting->ranks.size() == rank.ranks;
  if (!all) return std::nullopt;
  GangMet met{meeting->key, {}};
  for (const auto& [number, one] : meeting->ranks)
    met.addresses.push_back(one.address);
  return met;
}

}  // namespace troupe::actors::company
