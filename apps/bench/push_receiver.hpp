// The receiving side of `troupe bench push`: does what the messages of its channel say until one
// says that it is the end. Runs in a process of its own, or on a thread for the channel of one
// process. docs/weights.md describes the transfer that is measured.
//
//   {"do": "transfer", "version": V, "location": L}  fetches and packs: {"verified_ns", "pack_ns"}
//   {"do": "decode", "kv": "keep", "location": L}    decodes meanwhile, see PushDecode
//   {"do": "end"}
#pragma once

#include "apps/bench/push_channel.hpp"
#include "runtime/weights/weight_channel.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace troupe::app {

// What is pushed: a model and its weights of each version. Both processes make them for themselves,
// so that the receiver can tell which version a token came from.
struct PushJob {
  std::string model;  // a folder; empty: a random model of about `bytes`
  std::int64_t bytes = std::int64_t{256} << 20;
  std::string path = "shm";
  std::int64_t threads = 0, engine_threads = 0;
  std::int64_t pushes = 100, checked = 8;
  std::int64_t batch = 4, slice_us = 2000;
};
// What the receiver needs of it, as its first message.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PushJob, model, bytes, threads, engine_threads, batch, slice_us)

// The loaded or random weights, version 0.
core::Result<std::unique_ptr<model::ParamStore>> base_weights(const PushJob& job);

// `out` becomes version `version` of `base`: every weight scaled by its own factor.
void write_version(core::TeamRunner& team,
                   const model::ParamStore& base,
                   core::Version version,
                   model::ParamStore& out);

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
