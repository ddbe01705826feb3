// Changes the rewards of a live run, one change at a time: checks it on a copy of the board, tells
// the data role, and then replaces the board. No tickets are issued meanwhile, so that the first
// update with the new rewards is certain. Part of the controller, on its strand. A run that resumes
// from a checkpoint waits until the rewards that were attached to it come back or are detached.
// Bounds: one change at a time; the run ends after the plan's `reward_away` without any reward, or
// without one that it waits for.
#pragma once

#include "actors/controller/reward_board.hpp"
#include "actors/controller/run_state.hpp"
#include "actors/protocol/messages_rewards.hpp"

#include <string>

namespace troupe::actors::controller {

class RewardService {
 public:
  // `run` outlives it.
  explicit RewardService(RunState& run);

  async::task<core::Result<RewardsChanged>> attach(AttachReward request);
  async::task<core::Result<RewardsChanged>> reweight(ReweightReward request);
  async::task<core::Result<RewardsChanged>> detach(DetachReward request);

  bool is_attached(const std::string& peer) const { return board_.is_attached(peer); }
  // An attached reward is lost. kPeerLost: it was the last, and no other came in `reward_away`.
  async::task<core::Result<void>> lose(std::string peer, std::string cause);

  // A role has come up; it may be a reward that the resumed run waits for.
  void up(const std::string& peer);
  // Tells the listener which rewards of the checkpoint are missing, and waits for them. Error:
  // kPeerLost when one stayed away for `reward_away`.
  async::task<core::Result<void>> await_absent();

  // True while tickets must wait.
  bool holds() const noexcept { return changing_ || board_.bereft() || awaits(); }
  // True while a reward of the checkpoint is missing.
  bool awaits() const noexcept { return !board_.absent().empty(); }
  const RewardBoard& board() const noexcept { return board_; }

 private:
  auto begin_change();
  template <class Request>
  async::task<core::Result<RewardsChanged>> change(
      core::Result<void> (RewardBoard::*step)(const Request&), Request request);
  async::task<core::Result<RewardsChanged>> tell(RewardBoard next);
  async::task<core::Result<RewardsChanged>> forgo(std::string name);
  std::string waited() const;  // `reward_away` for messages: "300 s (--reward.away_s)"

  RunState& run_;
  const core::Duration away_max_;
  RewardBoard board_;
  std::uint64_t from_update_ = 0;  // of the newest set
  bool changing_ = false;
};

}  // namespace troupe::actors::controller
