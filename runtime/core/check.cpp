#include "runtime/core/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace troupe::core {

void check_failed(const char* file, int line, const char* expression, const char* why) noexcept {
  std::fprintf(stderr, "troupe: bug at %s:%d: %s (%s)\n", file, line, why, expression);
  std::fflush(stderr);
  std::abort();
}

}  // namespace troupe::core
