// The configuration of one training run as plain values. A member's path is its key:
// `actor.adam.lr` here is `--actor.adam.lr` on the command line and `actor: {adam: {lr: ...}}` in
// YAML. Members and their defaults are the rows of keys.def. Builder fills it (builder.hpp);
// read-only once training starts.
#pragma once

#include "runtime/config/key_types.hpp"
#include "runtime/config/method.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace troupe::config {

// The words of each choice, in the order of its enumerators.
template <class Choice>
inline constexpr std::array<std::string_view, 0> kWords;

enum class ParamDtype { kF32, kBf16, kBf16Compute };
template <>
inline constexpr std::array<std::string_view, 3> kWords<ParamDtype> = {"f32", "bf16",
                                                                       "bf16-compute"};
enum class SaveDtype { kF32, kBf16 };
template <>
inline constexpr std::array<std::string_view, 2> kWords<SaveDtype> = {"f32", "bf16"};

enum class KvOnUpdate { kKeep, kRecompute };
template <>
inline constexpr std::array<std::string_view, 2> kWords<KvOnUpdate> = {"keep", "recompute"};

enum class OnDivergence { kEnd, kBack };
template <>
inline constexpr std::array<std::string_view, 2> kWords<OnDivergence> = {"end", "back"};

enum class Normalize { kNone, kStored, kRunning };
template <>
inline constexpr std::array<std::string_view, 3> kWords<Normalize> = {"none", "stored", "running"};

enum class Transport { kCaf, kLoopback };
template <>
inline constexpr std::array<std::string_view, 2> kWords<Transport> = {"caf", "loopback"};

// clang-format off
#define TOP_KEY(type, name, value, ...) type name = value;
#define KEY(type, name, value, ...) type name = value;
#define SECTION(...) struct {
#define GROUP(...) struct {
#define END(name) } name;
// clang-format on

struct TrainConfig {
#include "runtime/config/keys.def"

  // Samples per update.
  std::int64_t samples_per_update() const {
    return rollout.batch_size * rollout.n_samples_per_prompt;
  }
  // Optimiser steps per pass over an update.
  std::int64_t mini_batches() const {
    return train.batch_size == 0 ? 1 : samples_per_update() / train.batch_size;
  }
};

}  // namespace troupe::config
