// Percentiles of lengths, for people and for programs.
#pragma once

#include "runtime/data/row_figures.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::app {

// "min 1, 50% 4, 90% 9, 99% 12, max 31, sum 812"
inline std::string spread_words(const std::vector<std::uint64_t>& lengths) {
  const data::Spread of = data::spread_of(lengths);
  return "min " + std::to_string(of.least) + ", 50% " + std::to_string(of.p50) + ", 90% " +
         std::to_string(of.p90) + ", 99% " + std::to_string(of.p99) + ", max " +
         std::to_string(of.most) + ", sum " + std::to_string(of.sum);
}

inline nlohmann::ordered_json spread_json(const std::vector<std::uint64_t>& lengths) {
  const data::Spread of = data::spread_of(lengths);
  return {{"min", of.least}, {"p50", of.p50},  {"p90", of.p90},
          {"p99", of.p99},   {"max", of.most}, {"sum", of.sum}};
}

}  // namespace troupe::app
