// Answers the calls of one session by another sampler that has the policy's weights (a server that
// joined the run), so that a run can learn from it: how to sample is the run's affair, as in
// CallSampler. Any thread.
#pragma once

#include "actors/environment/episode_run.hpp"
#include "actors/protocol/call_values.hpp"
#include "runtime/dialects/sampler.hpp"

#include <utility>

namespace troupe::actors::environment {

class PolicySampler final : public dialects::Sampler {
 public:
  // `engine` outlives the sampler.
  PolicySampler(dialects::Sampler& engine, SamplingSpec sampling)
      : engine_(engine), sampling_(std::move(sampling)) {}

  core::GroupId next_id() override { return engine_.next_id(); }
  void submit(engine::GroupRequest request,
              bool stream,
              async::Executor executor,
              Listener listener) override {
    CallSampling sampling = policy_sampling(sampling_, request.sampling);
    sampling.kept_mass = sampling.kept_mass || request.guide != nullptr;
    request.sampling = engine_sampling(sampling);
    engine_.submit(std::move(request), stream, std::move(executor), std::move(listener));
  }
  void abort(core::GroupId group) override { engine_.abort(group); }
  core::Version version() const override { return engine_.version(); }

 private:
  dialects::Sampler& engine_;
  const SamplingSpec sampling_;
};

}  // namespace troupe::actors::environment
