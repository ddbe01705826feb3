// An exponential moving average of a model's weights: e = beta e + (1 - beta) w after each
// optimiser step, started from the weights before the first. Owned by the trainer, used from its
// thread. Memory: a copy of the weights in f32, always on the host, and a second one while `add`
// reads weights from a device. Elementwise, so the bits do not depend on the team.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/params.hpp"
#include "runtime/store/written_files.hpp"

#include <filesystem>

namespace troupe::learn {

class WeightAverage {
 public:
  // `beta` in [0, 1).
  WeightAverage(const model::ParamStore& start, double beta);

  void add(core::TeamRunner& team, const model::ParamStore& weights);
  const model::ParamStore& weights() const { return average_; }

  // ema.safetensors in `folder`: f32, the Hugging Face names. Load restores the same bits.
  core::Result<store::CheckpointFile> save(const std::filesystem::path& folder) const;
  core::Result<void> load(const std::filesystem::path& folder);

 private:
  float beta_;
  model::ParamStore average_;
};

}  // namespace troupe::learn
