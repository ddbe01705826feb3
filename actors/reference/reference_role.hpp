// The reference role computes log-probs of sampled tokens under frozen weights, with the same
// forward pass as the engine and the trainer. Groups that arrive while the device is busy are
// scored together, up to `micro_rows_max` rows (a longer group alone). Runs on its strand; the
// numeric work runs on the device thread. Bound: kRoleInbox_frames_max groups that wait.
#pragma once

#include "actors/protocol/messages.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/score.hpp"

#include <deque>
#include <memory>
#include <vector>

namespace troupe::actors::reference {

class ReferenceRole {
 public:
  // `context` needs a device thread and a team.
  ReferenceRole(RoleContext context,
                std::shared_ptr<const model::PackedWeights> weights,
                std::int64_t micro_rows_max);

  // A repeated request is computed again, with the same bits.
  async::task<core::Result<Logprobs>> on(ScoreLogprobs request);

 private:
  struct Pending {
    ScoreLogprobs request;
    std::shared_ptr<async::Oneshot<core::Result<Logprobs>>> answer;
  };
  using Batch = std::vector<std::shared_ptr<Pending>>;

  Batch take_batch();
  async::task<void> work();
  static core::Result<std::vector<Logprobs>> score(const model::PackedWeights& weights,
                                                   core::TeamRunner& team,
                                                   model::ScoreScratch& scratch,
                                                   const Batch& batch);

  RoleContext context_;
  std::shared_ptr<const model::PackedWeights> weights_;
  std::int64_t micro_rows_max_;
  std::shared_ptr<model::ScoreScratch> scratch_;  // used on the device thread alone
  std::deque<std::shared_ptr<Pending>> pending_;
  bool working_ = false;
};

}  // namespace troupe::actors::reference
