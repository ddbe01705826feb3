// Selects the kernel level that runs: the widest that the processor and the system support, or the
// one that TROUPE_ISA names. Chosen once, at the first call, for the life of the process; any
// thread. A thread that works for a device installs that device's table (UseOps).
#pragma once

#include "kernels/panels.hpp"

namespace troupe::kernels {

struct Ops;

enum class Isa { kReference, kAvx2, kAvx512 };

// Whether this processor can run a level. kReference is always available.
bool isa_available(Isa isa) noexcept;
// The table of a level. The level must be available.
const Ops& ops_for(Isa isa);
// The widest available level, or the one that TROUPE_ISA names (reference, avx2, avx512); chosen at
// the first call. An unknown or unavailable name prints an error and exits with status 2. Within a
// UseOps scope the calling thread gets that scope's table instead: a device's.
const Ops& ops();
// The processor's table, even within a UseOps scope: for numbers in host memory.
const Ops& host_ops();

// Makes ops() return this table in the calling thread until the end of the scope.
class UseOps {
 public:
  explicit UseOps(const Ops& table) noexcept;
  UseOps(const UseOps&) = delete;
  UseOps& operator=(const UseOps&) = delete;
  ~UseOps();

 private:
  const Ops* const before_;
};

// Whether a CPU level has code of its own for panels of that dtype. For kBf16Compute only the
// reference has, and AVX-512 on a processor with the bf16 dot product. The other levels then call
// the reference, which gives the right bits, but slowly.
bool panel_dtype_available(const Ops& level, PanelDtype dtype) noexcept;

// Makes the calling thread flush denormal inputs and results to zero. Every computing thread must
// call it.
void flush_denormals() noexcept;

}  // namespace troupe::kernels
