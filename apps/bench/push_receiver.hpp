// The receiving side of `troupe bench push`: carries out the messages of its channel until the
// message "end". Runs in a process of its own, or on a thread when the channel within one process
// is measured. docs/weights.md describes the transfer that is measured.
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

// The benchmark's job. Both processes compute the weights of each version themselves, so that the
// receiver can tell which version a token came from.
struct PushJob {
  std::string model;  // a folder; empty: a random model of about `bytes`
  std::int64_t bytes = std::int64_t{256} << 20;
  std::string path = "shm";
  std::int64_t threads = 0, engine_threads = 0;
  std::int64_t pushes = 100, checked = 8;
  std::int64_t batch = 4, slice_us = 2000;
};
// The fields that the receiver needs, sent as its first message.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PushJob, model, bytes, threads, engine_threads, batch, slice_us)

// The loaded or random weights, version 0.
core::Result<std::unique_ptr<model::ParamStore>> base_weights(const PushJob& job);

// `out` becomes version `version` of `base`: every weight scaled by its own factor.
void write_version(core::TeamRunner& team,
                   const model::ParamStore& base,
                   core::Version version,
                   model::ParamStore& out);

inline constexpr int kReceiverSocket = 3;  // descriptor of the channel in a process of its own

// Serves until the end. `base`: the weights of version 0. Sends an error as {"error": TEXT} and
// ends.
void run_push_receiver(const PushJob& job,
                       const model::ParamStore& base,
                       weights::WeightSubscriber& subscriber,
                       const PushChannel& channel);

// `troupe bench push receiver`: the first message is the job.
core::Result<void> bench_push_receiver();

nlohmann::json location_json(const weights::WeightLocation& location);

}  // namespace troupe::app
