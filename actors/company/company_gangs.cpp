// How the company keeps gangs whole: their ranks meet through it, and when one is gone the others
// are taken down.
#include "actors/company/company.hpp"

namespace troupe::actors {

using core::ErrorCode;

void Company::mend_gangs() {
  auto all = placement_.break_up(context_.timers->now());
  if (!all.empty()) changed_.notify_all();  // ranks that wait for a meeting
  for (RolePlacement::Broken& broken : all) {
    const std::string what = "take down " + broken.rank.name;
    context_.scope->spawn(what,
                          take_down(broken.rank.name, broken.rank.epoch, std::move(broken.cause)));
  }
}

// Tells the run when a gang may have ranks again that it goes on without, or when that is over.
void Company::look_for_room() {
  const std::string gang = placement_.roomy(context_.timers->now());
  const std::string text = gang.empty()
                               ? ""
                               : gang + " has a node again for each of its " +
                                     std::to_string(placement_.ranks_wanted(gang)) + " ranks";
  if (text == room_) return;
  room_ = text;
  if (!text.empty()) hooks_.note(text + "; it starts with all at the next checkpoint");
  if (hooks_.regroup) hooks_.regroup(text);
}

// Says it when a gang starts with other than all of its ranks.
void Company::note_size(const PlacedRole& placed) const {
  if (placed.gang.empty() || placed.rank != 0) return;
  const std::uint32_t wanted = placement_.ranks_wanted(placed.gang);
  if (placed.ranks == wanted) return;
  hooks_.note(placed.gang + " goes on with " + std::to_string(placed.ranks) + " of its " +
              std::to_string(wanted) +
              " ranks: there is no node for the others; it takes them in at a checkpoint when " +
              "there is");
}

// A rank that did not stop may be stuck with its device: its process is ended, if it is one of this
// host's.
void Company::end_rank(const std::string& role, std::uint64_t epoch) {
  const PlacedRole* const placed = placement_.find(role);
  const bool stuck = placed != nullptr && placed->epoch == epoch && !placed->gang.empty() &&
                     placed->state == RoleState::kStopping && processes_.has(placed->node);
  if (!stuck) return;
  hooks_.note(role + " does not stop; its process is ended");
  processes_.kill(placed->node);
}

async::task<core::Result<GangMet>> Company::on(MeetGang request) {
  const PlacedRole* const asked = placement_.find(request.role);
  if (asked == nullptr || asked->gang.empty()) {
    co_return core::fail(ErrorCode::kInvalidArgument, request.role + " is no rank of a gang");
  }
  const auto is_over = [&] {
    const PlacedRole* const rank = placement_.find(request.role);
    return rank->epoch != request.epoch ||
           (rank->state != RoleState::kStarting && rank->state != RoleState::kUp);
  };
  if (!is_over()) {
    TROUPE_CO_TRY(meetings_.come(*asked, request));
    const std::string& socket = request.address.socket;
    if (hooks_.rank_listens && !socket.empty() && processes_.has(asked->node))
      hooks_.rank_listens(*asked, socket);
    changed_.notify_all();
  }
  for (;;) {
    if (is_over() || failed_ || resting_) break;
    if (auto met = meetings_.met(*placement_.find(request.role))) co_return std::move(*met);
    co_await changed_.wait(async::Deadline::none());
  }
  co_return core::fail(ErrorCode::kPeerLost,
                       "the start of " + request.role + " that asks for its gang is over");
}

}  // namespace troupe::actors
