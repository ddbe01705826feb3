// Carries the precompiled ATen headers that `troupe_library(... PCH torch)` reuses.
