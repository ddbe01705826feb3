#include "apps/bench/bench.hpp"

#include "apps/cli/stop_signal.hpp"

#include <cstdio>
#include <string_view>

namespace troupe::bench {
namespace {

struct Bench {
  std::string_view name, summary;
  Benchmark* run;
};

constexpr Bench kBenches[] = {
    {"generate", "tokens per second of the engine, prefill and decode", bench_generate},
    {"gemm", "matrix products at the shapes of a model", bench_gemm},
    {"kernels", "attention, norms, draws and AdamW", bench_kernels},
    {"exact", "log-probs of engine and trainer, bit by bit", bench_exact},
    {"train", "optimiser steps of the policy's trainer", bench_train},
    {"push", "new weights from a trainer to an engine in another process", bench_push},
    {"attach", "rewards that come and go while a run goes on", bench_attach},
    {"overlap", "an asynchronous run against the longest of its sides", bench_overlap},
    {"log", "bytes and time of the experience log for an update", bench_log},
    {"checkpoint", "hashing of a checkpoint's files", bench_checkpoint},
    {"collectives", "bytes between the processes of one role", bench_collectives},
    {"http", "calls of a server of rewards, by its backlog", bench_http},
    {"control", "processor time of a run's head for a sample", bench_control},
};

void print_help() {
  std::fputs("usage: troupe bench NAME [flags] [--json]   (troupe bench NAME --help for flags)\n\n",
             stdout);
  for (const Bench& bench : kBenches) {
    std::printf("  %-11.*s %.*s\n", static_cast<int>(bench.name.size()), bench.name.data(),
                static_cast<int>(bench.summary.size()), bench.summary.data());
  }
}

}  // namespace

Result<void> run_benchmark(cli::Words words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    print_help();
    return {};
  }
  cli::leave_stop_signal();
  for (const Bench& bench : kBenches) {
    if (bench.name == words[0]) return bench.run(words.subspan(1));
  }
  return fail(ErrorCode::kConfig, "there is no benchmark '" + words[0] + "'",
              "`troupe bench --help` lists them");
}

}  // namespace troupe::bench
