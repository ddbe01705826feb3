// Samples a list of prompts with one engine and continuous batching: keeps up to kOpenGroups_max
// groups open and returns finished groups in the order of their prompts. A group's tokens
// depend only on weights, prompt, parameters, seed and index, so the work may stop anywhere and
// resume. Owned by a command; runs on its thread.
#pragma once

#include "apps/cli/sampling_flags.hpp"
#include "runtime/core/result.hpp"
#include "runtime/engine/driver.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace troupe::app {

class BatchSampler {
 public:
  // Most prompts that are in the engine, or finished and waiting for an earlier prompt.
  static constexpr std::size_t kOpenGroups_max = 256;

  struct Hooks {
    // Returns the tokens of prompt `index`, which is sampled next. An error ends `run`.
    std::function<Result<std::vector<std::int32_t>>(std::size_t index)> prompt;
    // Takes all samples of prompt `index`, in the order of their index. Called in prompt order.
    std::function<Result<void>(std::size_t index, std::vector<engine::Sample> samples)> done;
    // Called after each step of the engine; may be empty.
    std::function<Result<void>()> stepped = {};
  };

  // flags.seed is the seed of the whole list; prompt i is sampled with derive_seed(seed, i).
  // `samples`: number of samples of each prompt.
  BatchSampler(engine::EngineDriver& driver, const cli::SamplingFlags& flags, std::int64_t samples)
      : driver_(driver),
        sampling_(flags.params()),
        samples_(static_cast<std::int32_t>(samples)),
        seed_(static_cast<std::uint64_t>(flags.seed)) {}

  // Samples prompts `first` to `end` - 1. Error kInterrupted: the user asked to stop.
  Result<void> run(std::size_t first, std::size_t end, const Hooks& hooks);

 private:
  Result<void> submit(std::size_t index, const Hooks& hooks);
  Result<void> hand_out(const Hooks& hooks);

  engine::EngineDriver& driver_;
  const engine::SamplingParams sampling_;
  const std::int32_t samples_;
  const std::uint64_t seed_;
  std::size_t next_done_ = 0;                                  // the next prompt to hand out
  std::map<std::uint64_t, std::vector<engine::Sample>> open_;  // finished samples by prompt
};

}  // namespace troupe::app
