// Validates a request before the engine accepts it. Each error names the group, the value and what
// is allowed. A pure function.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/engine/group.hpp"
#include "runtime/engine/types.hpp"

#include <cstdint>

namespace troupe::engine {

inline constexpr std::size_t kStopTokens_max = 256;
inline constexpr std::size_t kStopStrings_max = 64;
inline constexpr std::size_t kStopString_bytes_max = 256;
inline constexpr float kTemperature_min = 1e-3f;  // or 0 for greedy
inline constexpr float kTemperature_max = 1e3f;

inline constexpr float kRepetition_min = 1e-2f;  // of the repetition penalty; 1 turns it off
inline constexpr float kRepetition_max = 1e2f;
inline constexpr float kPenalty_max = 2.0f;  // presence and frequency, either sign
inline constexpr std::size_t kLogitBias_max = 1024;
inline constexpr float kLogitBias_size_max = 1e6f;  // enough to forbid or to force a token
inline constexpr std::int32_t kTopLogprobs_max = 128;

// The engine's and the model's properties that bound a request.
struct RequestBounds {
  std::int64_t vocab = 0;
  std::int64_t context = 0;
  std::int32_t sequences_max = 0;
  std::int32_t blocks = 0;
  KvWindow window;
  std::size_t end_tokens = 0;  // number of the model's end tokens
  bool has_text = false;       // the engine can decode tokens, for stop strings
  bool has_experts = false;    // the model is a mixture of experts
};

// Errors: kInvalidArgument, kData (longer than the context), kResources (can never fit).
core::Result<void> check_request(const GroupRequest& request, const RequestBounds& bounds);

}  // namespace troupe::engine
