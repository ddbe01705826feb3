// The program's version and class of arithmetic. All processes of a company must have the same. Any
// thread.
#pragma once

#include <string>

namespace troupe::cli {

// The class of arithmetic of this processor with weights in f32 (runtime/model/arithmetic.hpp).
// Computed at the first call, in some milliseconds.
const std::string& processor_arithmetic();

// The version of the program, such as "0.1.0".
std::string build_version();

}  // namespace troupe::cli
