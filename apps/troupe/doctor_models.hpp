// The part of `troupe doctor` that tries every supported family of models: samples some tokens from
// a tiny random model and compares the engine's log-probs with the scorer's. Each family takes some
// milliseconds and less than 10 MB. Called on the main thread; starts no other.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/model/families.hpp"

#include <cstdint>
#include <string>

namespace troupe::app {

struct FamilyCheck {
  std::int64_t tokens = 0;
  std::int64_t differing = 0;  // log-probs of the engine that are not the scorer's to the bit
};

// The config.json of the tiny model: windows shorter than what it writes, an odd head size.
std::string tiny_config(const model::Family& family);
// Errors: what the loader or the engine say.
core::Result<FamilyCheck> check_family(const model::Family& family);
// Tries all families and prints a line for each. Error kNumeric: the log-probs of one differ.
core::Result<void> print_families();

}  // namespace troupe::app
