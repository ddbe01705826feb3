// The soak of `troupe bench exact --soak SECONDS`: one engine on all cores, under random submits,
// cuts, pauses, sleeps and changes of weights, floods of requests beyond its queue, for as long as
// asked. Every sample that comes back is compared with what an engine says that is left alone, and
// at the end every KV block must be free and the memory of the process what it was. Runs on the
// caller's thread; memory: packed weights twice, one engine.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace troupe::app {

struct SoakReport {
  double seconds = 0;
  std::uint64_t steps = 0, groups = 0, samples = 0, tokens = 0;
  std::uint64_t aborted_samples = 0, refused_groups = 0, preempted = 0;
  std::uint64_t prefix_hit_tokens = 0, evicted_blocks = 0;
  std::map<std::string, std::uint64_t> events;
  std::uint64_t differing_samples = 0;
  std::int64_t leaked_blocks = 0;
  // Proportional set size: the most until each kind of event had happened a few times, at the end,
  // and the most of all.
  double pss_start_mb = 0, pss_end_mb = 0, pss_max_mb = 0;

  // Errors: kInternal for a leaked block or grown memory, kNumeric for a sample that differs.
  core::Result<void> verdict() const;
};

core::Result<SoakReport> run_soak(const std::filesystem::path& model,
                                  double seconds,
                                  std::uint64_t seed);

}  // namespace troupe::app
