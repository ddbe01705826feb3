// `troupe version`: prints the version, the build type and the compiler.
#include "apps/cli/build_facts.hpp"
#include "apps/troupe/commands.hpp"

#include <cstdio>

namespace troupe::app {

Result<void> run_version(cli::Words) {
  std::printf("troupe %s (%s, %s)\n", cli::build_version().c_str(), TROUPE_BUILD_TYPE,
              "x86-64, g++ " __VERSION__);
  return {};
}

}  // namespace troupe::app
