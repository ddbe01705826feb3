// The record that the engine's side of `troupe bench exact` writes and the trainer's side checks:
// prompts, sampled tokens, the bits of their log-probs, temperature and threads. Value types; the
// processes exchange them as a file of 32-bit words with a checksum, of at most
// kTranscript_bytes_max.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace troupe::bench {

inline constexpr std::uint64_t kTranscript_bytes_max = 1ull << 30;

struct TranscriptSample {
  std::vector<std::int32_t> tokens;
  std::vector<float> logprobs;  // one per token
};

struct TranscriptGroup {
  float temperature = 1.0f;  // of the log-probs
  std::int32_t threads = 1;  // of the engine that sampled the group
  std::vector<std::int32_t> prompt;
  std::vector<TranscriptSample> samples;
};

struct Transcript {
  std::vector<TranscriptGroup> groups;
  std::int64_t tokens() const;  // of all responses
};

core::Result<void> write_transcript(const std::filesystem::path& file,
                                    const Transcript& transcript);

// Errors: kNotFound (no such file), kData (not a transcript, damaged, too long).
core::Result<Transcript> read_transcript(const std::filesystem::path& file);

}  // namespace troupe::bench
