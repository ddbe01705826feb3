#include "runtime/store/troupe_home.hpp"

#include <cstdlib>

namespace troupe::store {

std::filesystem::path troupe_home() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::filesystem::path(value == nullptr ? "" : value);
  };
  if (const auto named = variable("TROUPE_HOME"); !named.empty()) return named;
  const auto home = variable("HOME");
  return home.empty() ? home : home / ".cache" / "troupe";
}

}  // namespace troupe::store
