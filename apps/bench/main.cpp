// troupe-bench: the entry point of the measurements that `troupe bench` starts.
#include "apps/bench/bench.hpp"
#include "apps/cli/run_program.hpp"

int main(int argc, char** argv) {
  return troupe::cli::run_program(argc, argv, troupe::bench::run_benchmark);
}
