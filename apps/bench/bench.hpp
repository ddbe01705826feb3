// The benchmarks of `troupe bench NAME [flags] [--json]`. generate, gemm, kernels, train, push and
// collectives measure the machine's limits in the same run and print shares of them, so that
// results compare across machines. --json prints one JSON object per line; without it the output is
// text for people.
#pragma once

#include "apps/cli/words.hpp"
#include "runtime/core/result.hpp"

namespace troupe::app {

// `troupe bench`: runs the benchmark words[0], or prints help for no word or --help. Error kConfig:
// there is no such benchmark.
core::Result<void> run_bench(Words words);

// Each takes the words after its name. The first lines of its source say what it measures.
core::Result<void> bench_generate(Words words);
core::Result<void> bench_gemm(Words words);
core::Result<void> bench_kernels(Words words);
core::Result<void> bench_exact(Words words);  // error kNumeric: a log-prob differs in a bit
core::Result<void> bench_train(Words words);
core::Result<void> bench_push(Words words);    // error kNumeric: a token without its version's bits
core::Result<void> bench_attach(Words words);  // error kData: a sample lost, doubled or misscored
core::Result<void> bench_overlap(Words words);
core::Result<void> bench_control(Words words);
core::Result<void> bench_log(Words words);
core::Result<void> bench_collectives(Words words);
core::Result<void> bench_checkpoint(Words words);
core::Result<void> bench_http(Words words);

}  // namespace troupe::app
