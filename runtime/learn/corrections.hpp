// The corrections of tokens that another policy sampled, as a table (docs/algorithms.md,
// "Corrections"): a new one is a row and a function in corrections.cpp. Immutable; any thread.
#pragma once

#include <span>
#include <string_view>

namespace troupe::learn {

struct SampleWeights;

struct Correction {
  std::string_view name, alias = {};
  std::string_view help;      // one line, for the configuration
  bool carries_rho = false;   // multiplies by rho; else it only keeps or drops
  bool has_range = false;     // reads algo.correction.low beside high
  bool masks_update = false;  // reads a mask over all tokens of the update, made at its start
  void (*weigh)(SampleWeights& sample) = nullptr;  // null: no correction

  static std::span<const Correction> all();
};

}  // namespace troupe::learn
