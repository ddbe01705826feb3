// The part of `troupe doctor` that tries every offered family of models: a tiny random model of
// each writes some tokens in the engine, and the scorer computes their log-probs again. Each family
// takes some milliseconds, memory below 10 MB. Called on the main thread; starts no other.
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
// Tries all and prints a line for each. Error (kNumeric): one did not agree.
core::Result<void> print_families();

}  // namespace troupe::app
