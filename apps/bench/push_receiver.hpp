// The receiving side of `troupe bench push`: does what the messages of its channel say until one
// says that it is the end. Runs in a process of its own, or on a thread for the channel of one
// process. docs/weights.md describes the transfer that is measured.
//
//   {"do": "transfer", "version": V, "location": L}  fetches and packs: {"verified_ns", "pack_ns"}
//   {"do": "decode", "kv": "keep", "location": L}    decodes meanwhile, see PushDecode
//   {"do": "end"}
#pragma once

#include "apps/bench/push_channel.hpp"
#include "apps/bench/push_job.hpp"
#include "runtime/weights/weight_channel.hpp"

namespace troupe::app {

inline constexpr int kReceiverSocket = 3;  // descriptor of the channel in a process of its own

// `base`: the weights of version 0. Answers an error with {"error": TEXT} and ends.
void run_push_receiver(const PushJob& job,
                       const model::ParamStore& base,
                       weights::WeightSubscriber& subscriber,
                       const PushChannel& channel);

// `troupe bench push receiver`: the first message is the job.
core::Result<void> bench_push_receiver();

nlohmann::json location_json(const weights::WeightLocation& location);

}  // namespace troupe::app
