// troupe: the entry point. Picks the subcommand, prints its error, returns its exit status.
#include "apps/cli/stop_signal.hpp"
#include "apps/troupe/commands.hpp"
#include "runtime/core/open_files.hpp"
#include "runtime/core/thrown.hpp"

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  using namespace troupe;
  app::install_stop_signal();
  core::raise_open_files_max();  // each connection takes one or more
  const std::vector<std::string> words(argv + 1, argv + argc);
  core::Error error;
  try {
    auto done = app::run_command(words);
    // What was written before may have failed, too.
    if (done && std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
    error = done ? core::Error{core::ErrorCode::kResources, "cannot write to standard output"}
                 : done.error();
  } catch (const std::exception& thrown) {
    error = core::error_of(thrown, "unexpected failure");
  }
  std::fflush(stdout);
  std::fputs(app::error_text(error).c_str(), stderr);
  return core::exit_status(error.code);
}
