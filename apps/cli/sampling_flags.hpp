// Flags that several commands share: how tokens are sampled (`generate`, `chat`, `eval`), and how
// much an engine may hold (`generate`, `eval`). Plain values; the main thread.
#pragma once

#include "apps/cli/flags.hpp"
#include "runtime/engine/types.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::cli {

struct SamplingFlags {
  std::int64_t max_new_tokens = 256;
  double temperature = 1.0;
  double top_p = 1.0;
  std::int64_t top_k = 0;
  double min_p = 0.0;
  std::vector<std::string> stop;
  std::int64_t seed = 42;

  // Appends the flags that fill this object, which must outlive their parsing.
  void add_to(std::vector<Flag>& flags);

  // Replaces escapes in stop strings, such as \n by a newline.
  engine::SamplingParams params() const;
};

// `troupe serve` defines the same flags itself, besides others.
struct EngineFlags {
  std::int64_t sequences = 256, kv_bytes = 1ll << 30;  // running samples; bytes of KV cache

  // Appends the flags that fill this object, which must outlive their parsing.
  void add_to(std::vector<Flag>& flags) {
    flags.push_back(
        {"--max-num-seqs", &sequences, "sequences computed at a time", false, 1, 65536});
    flags.push_back(
        {"--kv-cache-memory-bytes", &kv_bytes, "memory for keys and values", false, 1, 1e15});
  }

  engine::EngineLimits limits() const {
    engine::EngineLimits limits;
    limits.max_num_seqs = static_cast<std::int32_t>(sequences);
    limits.kv_cache_gb.bytes = static_cast<std::uint64_t>(kv_bytes);
    return limits;
  }
};

}  // namespace troupe::cli
