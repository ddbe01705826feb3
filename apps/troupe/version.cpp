// `troupe version`.
#include "apps/troupe/commands.hpp"

#include <cstdio>

namespace troupe::app {

core::Result<void> run_version(Words) {
  std::printf("troupe %s (%s, %s)\n", TROUPE_VERSION, TROUPE_BUILD_TYPE,
              "x86-64, g++ " __VERSION__);
  return {};
}

}  // namespace troupe::app
