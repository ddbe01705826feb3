// The program's version and arithmetic, in which all processes of a company must agree. Constants
// of the build.
#pragma once

#include <string>

namespace troupe::app {

// Names the arithmetic of the kernels: builds of one name compute the same bits
// (docs/adr/0003-exact-arithmetic.md).
inline constexpr char kArithmetic[] = "exact-f32";

// "0.1.0".
std::string build_version();

}  // namespace troupe::app
