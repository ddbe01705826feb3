// Changes of the rewards while a run goes on, one at a time: each is checked on a copy of the
// board, told to the data role, and only then true. While one is under way no tickets are issued,
// so that the update it takes effect from is never mistaken. Part of the controller, on its strand.
// A run that goes on from a checkpoint waits for the rewards that were attached to it: they come
// back, or are detached. Bounds: one change at a time; without any reward, or without one that was
// attached, the run ends after the plan's `reward_away`.
#pragma once

#include "actors/controller/reward_board.hpp"
#include "actors/controller/run_state.hpp"
#include "actors/protocol/messages_rewards.hpp"

#include <string>

namespace troupe::actors {

class RewardService {
 public:
  // `run` outlives it.
  explicit RewardService(RunState& run);

  async::task<core::Result<RewardsChanged>> attach(AttachReward request);
  async::task<core::Result<RewardsChanged>> reweight(ReweightReward request);
  async::task<core::Result<RewardsChanged>> detach(DetachReward request);

  bool is_attached(const std::string& peer) const { return board_.is_attached(peer); }
  // An attached reward is gone. Error: kPeerLost when it was the last and none came in its place.
  async::task<core::Result<void>> lose(std::string peer, std::string cause);

  // A role has come up that may be a reward of an earlier life.
  void up(const std::string& peer);
  // Says which rewards of an earlier life are awaited, and waits for them. Error: kPeerLost when
  // one stayed away for `reward_away`.
  async::task<core::Result<void>> await_absent();

  // True while tickets must wait.
  bool holds() const noexcept { return changing_ || board_.bereft() || awaits(); }
  // For rewards of an earlier life.
  bool awaits() const noexcept { return !board_.absent().empty(); }
  const RewardBoard& board() const noexcept { return board_; }

 private:
  auto begin_change();
  template <class Request>
  async::task<core::Result<RewardsChanged>> change(
      core::Result<void> (RewardBoard::*step)(const Request&), Request request);
  async::task<core::Result<RewardsChanged>> tell(RewardBoard next);
  async::task<core::Result<RewardsChanged>> forgo(std::string name);
  std::string waited() const;  // for messages

  RunState& run_;
  const core::Duration away_max_;
  RewardBoard board_;
  std::uint64_t from_update_ = 0;  // of the newest set
  bool changing_ = false;
};

}  // namespace troupe::actors
