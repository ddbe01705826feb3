// The build id. The program and libtroupe_learn.so each contain it and work together only when the
// two are equal. The text is generated (runtime/cmake/TroupeBuildId.cmake).
#pragma once

namespace troupe::learn {

// Hidden, so that the library uses its own copy, not the program's.
[[gnu::visibility("hidden")]] extern const char kBuildId[];

}  // namespace troupe::learn
