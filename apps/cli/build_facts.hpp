// What makes two processes of one company fit together. Constants of the build.
#pragma once

#include <string>

namespace troupe::app {

// The class of bits of every kernel of this build (docs/adr/0003-exact-arithmetic.md).
inline constexpr char kArithmetic[] = "exact-f32";

// "0.1.0".
std::string build_version();

}  // namespace troupe::app
