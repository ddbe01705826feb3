#include "kernels/cpu/avx512_bf16.hpp"
#include "kernels/levels.hpp"
#include "runtime/core/check.hpp"

#include <xmmintrin.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace troupe::kernels {
namespace {

thread_local const Ops* in_force = nullptr;

const Ops& choose() {
  constexpr Isa kLevels[] = {Isa::kAvx512, Isa::kAvx2, Isa::kReference};
  const char* wanted = std::getenv("TROUPE_ISA");
  if (wanted == nullptr || *wanted == '\0') {
    for (const Isa isa : kLevels)
      if (isa_available(isa)) return ops_for(isa);
  }
  for (const Isa isa : kLevels)
    if (isa_available(isa) && std::string_view(ops_for(isa).name) == wanted) return ops_for(isa);
  std::fprintf(stderr, "troupe: TROUPE_ISA=%s is not a level of this processor; it has:", wanted);
  for (const Isa isa : kLevels)
    if (isa_available(isa)) std::fprintf(stderr, " %s", ops_for(isa).name);
  std::fprintf(stderr, "\n");
  std::exit(2);
}

}  // namespace

// __builtin_cpu_supports also checks that the system saves the registers (xgetbv).
bool isa_available(Isa isa) noexcept {
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  switch (isa) {
    case Isa::kReference:
      return true;
    case Isa::kAvx2:
      return avx2;
    case Isa::kAvx512:
      return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
  return false;
}

const Ops& ops_for(Isa isa) {
  TROUPE_CHECK(isa_available(isa), "this processor lacks the asked level");
  switch (isa) {
    case Isa::kReference:
      break;
    case Isa::kAvx2:
      return avx2::kOps;
    case Isa::kAvx512:
      return avx512::kOps;
  }
  return reference::kOps;
}

const Ops& ops() {
  return in_force != nullptr ? *in_force : host_ops();
}

const Ops& host_ops() {
  static const Ops& chosen = choose();
  return chosen;
}

UseOps::UseOps(const Ops& table) noexcept : before_(in_force) {
  in_force = &table;
}
UseOps::~UseOps() {
  in_force = before_;
}

bool panel_dtype_available(const Ops& level, PanelDtype dtype) noexcept {
  if (dtype != PanelDtype::kBf16Compute || &level == &reference::kOps) return true;
  return &level == &avx512::kOps && avx512_bf16::available();
}

void flush_denormals() noexcept {
  constexpr unsigned kFlushToZero = 0x8000;
  constexpr unsigned kDenormalsAreZero = 0x0040;
  _mm_setcsr(_mm_getcsr() | kFlushToZero | kDenormalsAreZero);
}

}  // namespace troupe::kernels
