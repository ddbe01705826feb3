// The receiving side of `troupe bench push`: does what the lines of its channel say until it ends.
// Runs in a process of its own, or on a thread for the channel of one process.
#pragma once

#include "apps/bench/push_control.hpp"
#include "apps/bench/push_job.hpp"
#include "apps/cli/words.hpp"
#include "runtime/weights/weight_channel.hpp"

namespace troupe::app {

// `base`: the weights of version 0. Answers an error with an "error ..." line and ends.
void run_push_receiver(const PushJob& job,
                       const model::ParamStore& base,
                       weights::WeightSubscriber& subscriber,
                       LineChannel& channel);

// The words that start this program as the receiver of `job`, and what it then does with them.
std::vector<std::string> receiver_words(const PushJob& job);
core::Result<void> bench_push_receiver(Words words);

std::string location_text(const weights::WeightLocation& location);

}  // namespace troupe::app
