// The values of calls (messages_calls.hpp) as the engine and the configuration have them. Pure
// functions; any thread.
#pragma once

#include "actors/protocol/messages.hpp"
#include "actors/protocol/messages_calls.hpp"
#include "runtime/engine/types.hpp"

namespace troupe::actors {

// Who takes calls.
inline constexpr const char* kCallPeer = "controller/0";

// How a run samples, as the sampling of a call, which reports the kept mass where that truncates.
CallSampling call_sampling(const SamplingSpec& spec);
// How a run samples a request of a program: lengths, ends and what is reported are the request's,
// all else is the run's, since the policy learns from what was drawn.
CallSampling policy_sampling(const SamplingSpec& spec, const engine::SamplingParams& given);
engine::SamplingParams engine_sampling(const CallSampling& sampling);

Completed completed_of(engine::Sample sample);
// Without group and index, which the caller knows.
engine::Sample sample_of(Completed completed);

}  // namespace troupe::actors
