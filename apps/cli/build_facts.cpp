#include "apps/cli/build_facts.hpp"

namespace troupe::app {

std::string build_version() {
  return TROUPE_VERSION;
}

}  // namespace troupe::app
