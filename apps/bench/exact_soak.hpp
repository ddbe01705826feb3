// The soak of `troupe bench exact --soak SECONDS`: one engine on all cores, under random submits,
// cuts, pauses, sleeps and changes of weights, floods of requests beyond its queue, for as long as
// asked. Every sample that comes back is compared with what an engine says that is left alone, and
// at the end every KV block must be free and the memory of the process what it was. Runs on the
// caller's thread; memory: packed weights twice, one engine.
#pragma once

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
                                  double seconds,
                                  std::uint64_t seed);

}  // namespace troupe::app
