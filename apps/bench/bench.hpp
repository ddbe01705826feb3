// The benchmarks of `troupe bench NAME [flags] [--json]`. generate, gemm, kernels, train, push and
// collectives measure the machine's limits in the same run and print shares of them, so that
// results compare across machines. --json prints one JSON object per line; without it the output is
// text for people.
#pragma once

#include "apps/cli/words.hpp"
#include "runtime/core/result.hpp"

namespace troupe::bench {

using Benchmark = Result<void>(cli::Words words);

// `troupe bench`: runs the benchmark words[0], or prints help for no word or --help. Error kConfig:
// there is no such benchmark.
Benchmark run_benchmark;

// Each takes the words after its name. The first lines of its source say what it measures.
Benchmark bench_generate, bench_gemm, bench_kernels, bench_train, bench_overlap, bench_control;
Benchmark bench_log, bench_collectives, bench_checkpoint, bench_http;
Benchmark bench_exact;   // error kNumeric: a log-prob differs in a bit
Benchmark bench_push;    // error kNumeric: a token without its version's bits
Benchmark bench_attach;  // error kData: a sample lost, doubled or misscored

}  // namespace troupe::bench
