// An engine that decodes while new weights come: the part of the receiver of `troupe bench push`
// that measures pauses, and checks that no token was made of two versions. Steps run on the
// caller's thread; each fetch has a thread of its own, as in a generator.
#pragma once

#include "apps/bench/push_channel.hpp"
#include "apps/bench/push_job.hpp"
#include "runtime/engine/driver.hpp"
#include "runtime/weights/weight_channel.hpp"

#include <future>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace troupe::app {

class PushDecode {
 public:
  PushDecode(const PushJob& job,
             const model::ParamStore& base,
             weights::WeightSubscriber& subscriber,
             weights::WeightLocation location,
             core::TeamRunner& team);

  // Says {"ready": true}. Then a push goes on from {"do": "begin"} to {"do": "version", "version":
  // V}, whose answer is {"swapped_ns"}, the end of the first step on it; until {"do": "stop"}.
  core::Result<void> run(const PushChannel& channel, engine::KvAction action);

  // step_ms, step_ms_p99_alone, step_ms_p99_during and steps_during, of decode steps without and
  // during pushes.
  nlohmann::json times() const;
  // Lets all samples finish and computes their log-probs again with fresh panels of each version
  // that a token claims: checked_tokens, checked_versions, mixed_tokens.
  core::Result<nlohmann::json> check();

 private:
  core::Result<void> refill();
  // One step, after a slice of packing when weights have come. False: the step computed prompts and
  // is not a decode step.
  core::Result<bool> step(engine::KvAction action);
  core::Result<std::int64_t> differing(const model::PackedWeights& panels);

  const PushJob& job_;
  const model::ParamStore& base_;
  weights::WeightSubscriber& subscriber_;
  const weights::WeightLocation location_;
  core::TeamRunner& team_;
  std::optional<engine::EngineDriver> driver_;
  std::int32_t new_tokens_ = 0;
  std::uint64_t next_group_ = 1;
  std::int64_t open_ = 0;
  std::map<std::uint64_t, std::vector<std::int32_t>> prompts_;
  std::vector<engine::Sample> finished_;
  std::future<core::Result<std::unique_ptr<weights::WeightIntake>>> fetch_;
  std::shared_ptr<weights::WeightIntake> intake_;
  std::optional<core::Version> swapped_;  // by this step
  std::vector<double> alone_ns_, during_ns_;
};

}  // namespace troupe::app
