// The table of off-policy corrections, which reweigh or drop tokens that another policy sampled
// (docs/algorithms.md, "Corrections"). To add one, add a row and a function in corrections.cpp.
// Immutable; any thread.
#pragma once

#include <span>
#include <string_view>

namespace troupe::learn {

struct SampleWeights;

struct Correction {
  std::string_view name, alias = {};
  std::string_view help;      // one line, for the configuration
  bool carries_rho = false;   // multiplies by rho; else it only keeps or drops
  bool has_range = false;     // reads algo.correction.low besides high
  bool masks_update = false;  // reads a mask that was made from all tokens at the update's start
  void (*weigh)(SampleWeights& sample) = nullptr;  // null: no correction

  static std::span<const Correction> all();
};

}  // namespace troupe::learn
