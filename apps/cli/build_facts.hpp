// The program's version and class of arithmetic. All processes of a company must have the same.
// Constants of the build.
#pragma once

#include <string>

namespace troupe::app {

// Names the class of arithmetic: builds with the same name compute the same bits from the same
// weights (docs/adr/0003-exact-arithmetic.md).
inline constexpr char kArithmetic[] = "exact-f32";

// The version of the program, such as "0.1.0".
std::string build_version();

}  // namespace troupe::app
