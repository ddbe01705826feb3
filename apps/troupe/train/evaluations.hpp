// The evaluations of a run, read back from its folder: accuracy of each held-out problem by step.
// Used at the end of a run for the table of before and after. Pure reading.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "runtime/core/result.hpp"

namespace troupe::app {

struct Evaluation {
  std::uint64_t step = 0;
  std::vector<double> sampled;  // mean reward of each problem, in file order
  std::vector<double> greedy;

  double sampled_mean() const;
  double greedy_mean() const;
};

// Error: kData naming the file and line that cannot be read.
core::Result<Evaluation> read_evaluation(const std::filesystem::path& file, std::uint64_t step);

}  // namespace troupe::app
