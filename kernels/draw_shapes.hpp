// Operands of the kernels that draw tokens on a device. Each has the bits of a class of
// runtime/engine, which draws on the host: Sampler, LogitChanges, KeptSet, RowReport. As in
// kernels/shapes.hpp, all pointers point into device memory. Rows are head rows, counted from the
// first one of `logits`; several draws may be from one row.
#pragma once

#include "kernels/row_shapes.hpp"

#include <cstdint>
#include <limits>

namespace troupe::kernels {

// Draws one token per draw from the softmax at its row's temperature, or the most likely one
// (engine::Sampler without truncation).
struct Draws {
  VocabRows rows;                     // with block_max and block_sum filled
  const double* uniform = nullptr;    // [draws] in [0, 1); below 0: the most likely token
  const std::int32_t* row = nullptr;  // [draws] the row of each draw; null: draw i uses row i
  std::int32_t* token = nullptr;      // [draws]
  float* logprob = nullptr;  // [draws]; not finite if the row's logits are not. Null: not wanted
};

// Tokens are ranked by scaled score, ties by lower id. The weight exp(score - max) of a token, at
// most 1, counts as a whole number of 1 / kMassUnits, rounded down. Sums of whole numbers do not
// depend on their order, so host and device may each add them in theirs. Those of the largest
// vocabulary, 2^24 tokens, fit into 64 bits.
inline constexpr double kMassUnits = 0x1p39;
constexpr std::uint64_t mass_of(float weight) {
  if (!(weight > 0.0f)) return 0;
  return static_cast<std::uint64_t>(
      static_cast<std::int64_t>(weight * static_cast<float>(kMassUnits)));
}
// Whether a running mass has reached a limit, both in these units. Monotone, as rounding is.
constexpr bool reaches(std::uint64_t mass, double limit) {
  return !(static_cast<double>(mass) < limit);
}

// What truncation keeps of a row, one cut after the other: the first `top_k` tokens, of these each
// token while the mass before it is below `top_p` of theirs, of these those whose weight is at
// least `min_p`. With top_k off, top-p is of the row's mass as Draws sums it.
struct Truncation {
  std::int32_t top_k = 0;  // 0 = off; else less than the vocabulary
  float top_p = 1;         // 1 = off
  float min_p = 0;         // 0 = off
};

// Draws from the tokens that truncation keeps: the first one, by id, with which the running mass
// exceeds floor(u * mass). A token of mass 0 is never drawn.
struct KeptDraws {
  VocabRows rows;                          // with block_max and block_sum filled
  const double* uniform = nullptr;         // [draws] in [0, 1)
  const std::int32_t* row = nullptr;       // [draws]
  const Truncation* truncation = nullptr;  // [draws]
  std::int32_t* token = nullptr;           // [draws]; 0 if the row's logits are not finite
  unsigned long long* mass = nullptr;      // [draws] of all kept tokens; null: not wanted
};

// How the logit of one token changes before a draw.
struct LogitChange {
  enum : std::uint32_t { kBiased = 1, kRepeated = 2, kDrawn = 4, kMasked = 8 };
  std::uint32_t what = 0;  // which of the changes below
  std::int32_t token = 0;
  float bias = 0;          // kBiased
  std::int32_t count = 0;  // kDrawn: how often the response has the token
  std::int32_t row = 0;
};
struct Penalties {
  float repetition = 1, frequency = 0, presence = 0;
};
// In the order of vLLM: bias, repetition (Keskar et al. 2019),
// frequency, presence (OpenAI's definition), mask.
constexpr float changed_logit(float z, const LogitChange& change, const Penalties& penalties) {
  if (change.what & LogitChange::kBiased) z += change.bias;
  if (change.what & LogitChange::kRepeated)
    z = z > 0.0f ? z / penalties.repetition : z * penalties.repetition;
  if (change.what & LogitChange::kDrawn) {
    z -= penalties.frequency * static_cast<float>(change.count);
    z -= penalties.presence;
  }
  return change.what & LogitChange::kMasked ? -std::numeric_limits<float>::infinity() : z;
}

// Changes logits in place. No token of a row may appear twice.
struct ChangeLogits {
  float* logits = nullptr;  // rows [vocab], ld `ld`
  std::int64_t ld = 0;
  const LogitChange* change = nullptr;
  const Penalties* penalties = nullptr;  // [rows]
  float* before = nullptr;               // [changes] receives the old logits, or has them
};

// The most likely tokens of rows of logits z: most likely first, ties by lower id, with z - lse.
struct MostLikely {
  VocabRows rows;                       // at temperature 1, with block_max filled
  const float* lse = nullptr;           // [rows]
  const std::int32_t* row = nullptr;    // [lists] the row of each list
  const std::int32_t* begin = nullptr;  // [lists + 1] where each begins; at most kMostLikely_max
  std::int32_t* token = nullptr;
  float* logprob = nullptr;
};
inline constexpr std::int32_t kMostLikely_max = 128;

}  // namespace troupe::kernels
