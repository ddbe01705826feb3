// The benchmarks of `troupe bench NAME [flags] [--json]`. Each measures the machine's limits in the
// same run and prints shares of them, so that results compare across machines: with --json one
// object a line on standard output, else a few lines for people. Times are medians of 3.
#pragma once

#include "apps/cli/words.hpp"
#include "runtime/core/result.hpp"

namespace troupe::app {

// `troupe bench`: runs the named one; help for no name or --help. Error kConfig: no such benchmark.
core::Result<void> run_bench(Words words);

// Each takes the words after its name; the first lines of its source say what it measures.
core::Result<void> bench_generate(Words words);
core::Result<void> bench_gemm(Words words);
core::Result<void> bench_exact(Words words);  // error kNumeric: a bit differs
core::Result<void> bench_train(Words words);
core::Result<void> bench_push(Words words);    // error kNumeric: a token of two versions
core::Result<void> bench_attach(Words words);  // error kData: a sample scored by the wrong rewards
core::Result<void> bench_overlap(Words words);
core::Result<void> bench_control(Words words);

}  // namespace troupe::app
