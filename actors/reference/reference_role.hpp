// The reference role computes log-probs of sampled tokens under frozen weights, with the same
// forward pass as the engine and the trainer. It scores groups that wait while the device is busy
// together, up to `micro_rows_max` rows. Runs on its strand; the numeric work is a job of the
// device thread.
#pragma once

#include "actors/protocol/messages.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/score.hpp"

#include <deque>
#include <memory>
#include <vector>

namespace troupe::actors {

class ReferenceRole {
 public:
  // The context has the device thread and the team on it.
  ReferenceRole(RoleContext context,
                std::shared_ptr<const model::PackedWeights> weights,
                std::int64_t micro_rows_max);

  // Repeated: computed again, with the same bits.
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

}  // namespace troupe::actors
