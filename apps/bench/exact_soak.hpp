// The soak test `troupe bench exact --soak SECONDS`: one engine, on all cores or a GPU, under
// random submits, aborts, pauses, sleeps, changes of weights and floods of requests beyond its
// queue. Every sample must equal that of an undisturbed engine. At the end every KV block must be
// free, and the process's memory may have grown by 3 % and 12 MiB at most. Runs on the caller's
// thread. Memory: packed weights twice, one engine.
#pragma once

#include "apps/bench/exact_teams.hpp"
#include "runtime/core/result.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>

namespace troupe::app {

struct SoakReport {
  nlohmann::ordered_json figures;
  // Errors: kInternal for a leaked block or grown memory, kNumeric for a sample that differs.
  core::Result<void> verdict;
};

core::Result<SoakReport> run_soak(const std::filesystem::path& model,
                                  const ExactPlace& place,
                                  double seconds,
                                  std::uint64_t seed);

}  // namespace troupe::app
