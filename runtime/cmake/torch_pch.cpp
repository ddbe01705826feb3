// Empty: carries the precompiled ATen headers for `PCH torch` (runtime/cmake/TroupeTargets.cmake).
