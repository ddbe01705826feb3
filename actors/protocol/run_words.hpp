// How a run is named where two are told apart: by its folder, as its head calls it, and its id.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace troupe::actors {

// "runs/b (run 8c21e0447d10aa31)".
inline std::string run_words(std::uint64_t id, const std::string& folder) {
  char number[32];
  std::snprintf(number, sizeof number, "%016llx", static_cast<unsigned long long>(id));
  return folder.empty() ? "run " + std::string(number) : folder + " (run " + number + ")";
}

}  // namespace troupe::actors
