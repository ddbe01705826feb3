// What the program and libtroupe_learn.so were made from: both carry it, and fit together when it
// is the same. The text is generated (runtime/cmake/TroupeBuildId.cmake).
#pragma once

namespace troupe::learn {

// Hidden, so that the library has its own and not the program's.
[[gnu::visibility("hidden")]] extern const char kBuildId[];

}  // namespace troupe::learn
