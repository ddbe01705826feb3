// The receiving side of `troupe bench push`: does what the messages of its channel say, until the
// message "end". Runs in a process of its own, or on a thread of the sender's process with --path
// local. docs/weights.md describes the transfer that is measured.
//
//   {"do": "transfer", "version": V, "location": L}
//     Fetches V and takes it into panels in slices of job.slice_us. Answers {"arrived_ns":
//     clock_ns() when the fetch was done, "done_ns": when the panels were complete, "slice_ms",
//     "slice_ms_most": processor time of a slice on the calling thread, 99th percentile and most,
//     "slices": how many, "slices_over": of these, longer ones than job.slice_us}.
//   {"do": "decode", "kv": "keep" or "recompute", "location": L}
//     Decodes while weights arrive; PushDecode::run lists the messages in between.
//   {"do": "end"}
#pragma once

#include "apps/bench/push_channel.hpp"
#include "runtime/weights/weight_channel.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace troupe::bench {

// What to measure. Sender and receiver each compute the weights of a version themselves, so that
// the receiver can check which version a token came from.
struct PushJob {
  std::string model;  // a folder; empty: a random model of about `bytes`
  std::int64_t bytes = std::int64_t{256} << 20;
  std::string device = "cpu";                    // of both sides
  std::string dtype = "f32";                     // in which weights are sent and kept
  std::string path;                              // shm, device, tcp or local
  std::int64_t threads = 0, engine_threads = 0;  // of a transfer; of the engine that decodes
  std::int64_t pushes = 100, checked = 8;        // while decoding; with every token checked
  std::int64_t alone = 200;  // steps without a push that are timed, before the first push
  std::int64_t runs = 0;     // alternated ones of `alone` steps without and with pushes
  std::int64_t batch = 4, slice_us = 2000;  // samples at once; packing between two steps
};
// The fields that the receiver needs, sent as its first message.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(
    PushJob, model, bytes, device, dtype, threads, engine_threads, alone, batch, slice_us)

// The storage type of the panels, which `check` of the flags has found good.
kernels::PanelDtype panels_of(const PushJob& job);

// The weights of version 0: those of job.model, or random ones.
core::Result<std::unique_ptr<model::ParamStore>> base_weights(const PushJob& job);

// Writes version `version` of `base` to `out`: all weights scaled by a factor of that version.
void write_version(core::TeamRunner& team,
                   const model::ParamStore& base,
                   core::Version version,
                   model::ParamStore& out);

inline constexpr int kReceiverSocket = 3;  // descriptor of the channel in a process of its own

// Serves until the message "end". `base`: the weights of version 0. `device`: the team of a GPU;
// null: teams of the CPU. Sends an error as {"error": TEXT} and returns.
void run_push_receiver(const PushJob& job,
                       const model::ParamStore& base,
                       weights::WeightSubscriber& subscriber,
                       const PushChannel& channel,
                       core::TeamRunner* device = nullptr);

// `troupe bench push receiver`: the receiver as a process of its own, which gets the job as its
// first message.
core::Result<void> bench_push_receiver();

// A weight location as the L of the messages above.
nlohmann::json location_json(const weights::WeightLocation& location);

}  // namespace troupe::bench
