// What two processes must have in common to work in one company: the version and the arithmetic of
// the program. Constants of the build.
#pragma once

#include <string>

namespace troupe::app {

// Names the arithmetic of the kernels: builds of one name compute the same bits
// (docs/adr/0003-exact-arithmetic.md).
inline constexpr char kArithmetic[] = "exact-f32";

// "0.1.0".
std::string build_version();

}  // namespace troupe::app
