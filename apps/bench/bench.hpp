// The benchmarks of `troupe bench NAME [flags] [--json]`. Each measures the machine's limits in the
// same run and prints shares of them, so that a figure means the same on any machine: with --json
// one object a line on standard output, else a few lines for people. Times are medians of 3.
#pragma once

#include "apps/cli/words.hpp"
#include "runtime/core/result.hpp"

namespace troupe::app {

// `troupe bench`: runs the named one; help for no name or --help. Error kConfig: no such benchmark.
core::Result<void> run_bench(Words words);

// Each takes the words after its name.

// Tokens per second of the engine.
core::Result<void> bench_generate(Words words);
// Matrix products at the shapes of a model.
core::Result<void> bench_gemm(Words words);
// Shows that the log-probs which the engine reports are the trainer's, bit for bit. The engine
// samples in this process, a second process of the same program computes the same log-probs with
// the training forward, and a third opinion comes from the scorer without gradients. Error
// kNumeric: a bit differs.
core::Result<void> bench_exact(Words words);
// How fast the policy's trainer turns samples into optimiser steps, beside what this machine's
// multiply-adds allow, and where the time goes.
core::Result<void> bench_train(Words words);
// New weights from this process to an engine in another, beside the machine's limits.
// docs/weights.md and docs/performance.md say what the figures mean.
core::Result<void> bench_push(Words words);
// Rewards that come and go while a run goes on: how soon they score, and whether every sample was
// scored by the set of rewards that it was to have. Error kData: one was not.
core::Result<void> bench_attach(Words words);
// An asynchronous run, a synchronous one on the same share of the cores, and a synchronous one on
// all of them.
core::Result<void> bench_overlap(Words words);
// What a sample costs the head of a run (controller, prompts, tickets, rewards' answers, rollouts,
// ledger) over processes, and how much memory a node without a model takes.
core::Result<void> bench_control(Words words);

}  // namespace troupe::app
