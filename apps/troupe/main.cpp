// troupe: the entry point.
#include "apps/cli/run_program.hpp"
#include "apps/troupe/commands.hpp"

int main(int argc, char** argv) {
  return troupe::cli::run_program(argc, argv, troupe::app::run_command);
}
