#include "apps/cli/run_program.hpp"

#include "apps/cli/stop_signal.hpp"
#include "runtime/async/thrown.hpp"
#include "runtime/core/open_files.hpp"
#include "runtime/core/shortage.hpp"

#include <cstdio>
#include <exception>
#include <vector>

namespace troupe::cli {

int run_program(int argc, char** argv, Result<void> (*command)(Words words)) {
  core::end_for_want_on_terminate();
  install_stop_signal();
  core::raise_open_files_max();  // each connection takes one or more
  const std::vector<std::string> words(argv + 1, argv + argc);
  core::Error error;
  try {
    auto done = command(words);
    // What was written before may have failed, too.
    if (done && std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
    error =
        done ? core::Error{ErrorCode::kResources, "cannot write to standard output"} : done.error();
  } catch (const std::exception& thrown) {
    error = async::error_of(thrown, "unexpected failure");
  }
  std::fflush(stdout);
  std::fputs(error_text(error).c_str(), stderr);
  return core::exit_status(error.code);
}

}  // namespace troupe::cli
