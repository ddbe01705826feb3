// Causes events that must not change a bit of what an engine samples: groups aborted and submitted
// again, pauses in three modes, sleep and wake, weights swapped there and back with the KV cache
// computed again, other weights in between on the same prompts. Used by the rounds and the soak
// test of `troupe bench exact`, on their thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/engine/driver.hpp"
#include "runtime/model/packed.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace troupe::bench {

// A group that the engine holds.
struct LiveGroup {
  std::size_t place = 0;  // index of the group, or of its request, in the owner's list
  std::int32_t left = 0;  // unfinished samples
  std::int32_t cuts = 0;  // times it was aborted; at most kCuts_max, so that the group ends
  engine::GroupRequest request;
};

inline constexpr std::int32_t kCuts_max = 2;

struct TwoWeights {
  std::shared_ptr<const model::PackedWeights> weights;  // the weights that compute all results
  std::shared_ptr<const model::PackedWeights> other;    // other weights of the same model
};

class ExactEvents {
 public:
  // Keeps references to its arguments. `counts`: how often each event happened, by name; `next`
  // adds to it.
  ExactEvents(engine::EngineDriver& driver,
              const TwoWeights& two,
              std::uint64_t seed,
              std::map<std::string, std::uint64_t>& counts)
      : driver_(driver), two_(two), seed_(seed), counts_(counts) {}

  // Causes the next event in turn. `live`: the groups in the engine, by id. Submits again the
  // groups that it aborts; all their samples are sampled again, even those that had finished.
  core::Result<void> next(std::map<std::uint64_t, LiveGroup>& live);

 private:
  using Live = std::map<std::uint64_t, LiveGroup>;
  core::Result<void> cut_one(Live& live);
  core::Result<void> pause(engine::PauseMode mode);
  core::Result<void> pause_by_abort(Live& live);
  core::Result<void> sleep(engine::SleepParts parts);
  core::Result<void> swap_there_and_back();
  core::Result<void> other_weights(Live& live);
  core::Result<void> hand_in_again(LiveGroup& group);
  static bool may_cut(const Live& live);
  // Steps the paused engine. Error: a sample finished.
  core::Result<void> expect_still();

  engine::EngineDriver& driver_;
  const TwoWeights& two_;
  const std::uint64_t seed_;
  std::map<std::string, std::uint64_t>& counts_;
  std::uint64_t turn_ = 0;
};

}  // namespace troupe::bench
