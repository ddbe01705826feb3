// How a run is named where two are told apart: by its folder, as its head calls it, and its id.
#pragma once

#include "runtime/core/texts.hpp"

#include <cstdint>
#include <string>

namespace troupe::actors {

// "runs/b (run 8c21e0447d10aa31)".
inline std::string run_words(std::uint64_t id, const std::string& folder) {
  const std::string number = core::printed("%016lx", id);
  return folder.empty() ? "run " + number : folder + " (run " + number + ")";
}

}  // namespace troupe::actors
