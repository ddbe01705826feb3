// The part of `troupe doctor` that tries every supported family of models: samples some tokens from
// a tiny random model and compares the engine's log-probs with those of the scorer, the forward
// pass without gradients. Each family takes some milliseconds and less than 10 MB. Called on the
// main thread; starts no other.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/model/families.hpp"

#include <cstdint>
#include <string>

namespace troupe::app {

struct FamilyCheck {
  std::int64_t tokens = 0;     // sampled
  std::int64_t differing = 0;  // tokens whose log-probs of engine and scorer differ in any bit
};

// The config.json of the tiny model. Attention windows are shorter than prompt and response, and
// the head size is no power of two.
std::string tiny_config(const model::Family& family);
// Errors: those of the loader and the engine.
core::Result<FamilyCheck> check_family(const model::Family& family);
// Tries all families and prints a line for each. Error kNumeric: a family failed, or its log-probs
// differ.
core::Result<void> print_families();

}  // namespace troupe::app
