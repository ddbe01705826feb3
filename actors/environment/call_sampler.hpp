// Answers the calls of one session by the generators of a run: asks the controller, on the strand
// of the environment role, and passes what was drawn to the listener. Sampling follows the
// run's temperature and truncation, whatever a request says, since the policy learns
// from what was drawn. A call's seed follows from the episode and the prompt, so that a program
// that asks the same in another order gets the same. Any thread. Bound: one call for each sample
// asked for.
#pragma once

#include "actors/environment/episode_run.hpp"
#include "runtime/dialects/sampler.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

namespace troupe::actors::environment {

class CallSampler final : public dialects::Sampler,
                          public std::enable_shared_from_this<CallSampler> {
 public:
  CallSampler(RoleContext context, EpisodeOrder order)
      : context_(std::move(context)), order_(std::move(order)) {}

  core::GroupId next_id() override { return {next_.fetch_add(1)}; }
  void submit(engine::GroupRequest request,
              bool stream,
              async::Executor executor,
              Listener listener) override;
  // A call that was sent is drawn to its end.
  void abort(core::GroupId) override {}
  core::Version version() const override { return version_; }

  // No call is sent from now on: the episode is over.
  void close() override { closed_ = true; }

 private:
  struct Asked {
    engine::GroupRequest request;
    async::Executor executor;
    Listener listener;
  };
  static async::task<void> answer(std::shared_ptr<CallSampler> self, std::shared_ptr<Asked> asked);
  Complete call_of(const engine::GroupRequest& request, std::uint64_t seed);
  std::uint64_t seed_of(const engine::GroupRequest& request, std::uint64_t sample);

  const RoleContext context_;
  const EpisodeOrder order_;
  std::atomic<std::uint64_t> next_{1};
  std::atomic<core::Version> version_{0};  // of the weights that drew the newest answer
  std::atomic<bool> closed_{false};
  // On the role's strand.
  std::uint64_t calls_ = 0;
  std::map<std::uint64_t, std::uint64_t> asked_;  // how often, by the digest of a prompt
};

}  // namespace troupe::actors::environment
