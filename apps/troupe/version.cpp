// `troupe version`.
#include "apps/troupe/commands.hpp"

#include <cstdio>

#include "apps/troupe/build_facts.hpp"

namespace troupe::app {

std::string build_version() { return TROUPE_VERSION; }

core::Result<void> run_version(Words) {
  std::printf("troupe %s (%s, %s)\n", TROUPE_VERSION, TROUPE_BUILD_TYPE,
              "x86-64, g++ " __VERSION__);
  return {};
}

}  // namespace troupe::app
