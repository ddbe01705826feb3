// The benchmarks of `troupe bench NAME [flags] [--json]`. Each measures the machine's limits in the
// same run and prints shares of them, so that a figure means the same on any machine: with --json
// one object a line on standard output, else a few lines for people. Times are medians of 3.
#pragma once

#include "apps/cli/words.hpp"
#include "runtime/core/result.hpp"

#include <string_view>

namespace troupe::app {

struct Bench {
  std::string_view name;
  std::string_view summary;
  core::Result<void> (*run)(Words words);  // the words after the name
};

// `troupe bench`: runs the named one; help for no name or --help. Error kConfig: no such benchmark.
core::Result<void> run_bench(Words words);

core::Result<void> bench_gemm(Words words);
core::Result<void> bench_generate(Words words);

}  // namespace troupe::app
