// Troupe's numeric functions as a table of function pointers; kernels/ops.def lists them.
// `kernels/reference/` is the plain C++ that defines every result; `kernels/cpu/` computes the same
// bits with AVX2 or AVX-512, `kernels/cuda/` on a GPU.
//
// Rules of the arithmetic (docs/adr/0003-exact-arithmetic.md):
//  - a product of matrices is, for each output, one chain of fused multiply-adds over k ascending,
//    started from zero (or from C); then + bias, then + residual, one rounding each (PieceGemm and
//    the stored dtypes of PanelDtype say how they differ);
//  - a sum over a row runs over 16 virtual lanes (element i goes to lane i mod 16, ascending),
//    then a fixed tree: lane l += lane l+8, then l+4, l+2, l+1;
//  - exp and log are those of kernels/scalar.hpp, denormals are flushed, nothing is contracted or
//    re-associated;
//  - no result depends on the number of rows in a call, on tiles, or on how outputs are shared.
// The functions start no threads, allocate nothing and hold no state. Callers divide ranges of
// rows, panels or items among a core::Team. All matrices are row-major f32 with a leading dimension
// in elements. Pointers may be unaligned, except packed panels and KV pools (64 bytes).
#pragma once

#include "kernels/dispatch.hpp"
#include "kernels/draw_shapes.hpp"
#include "kernels/moment_codes.hpp"
#include "kernels/row_shapes.hpp"
#include "kernels/shapes.hpp"

#include <cstdint>

namespace troupe::kernels {

struct Ops {
  const char* name;  // "reference", "avx2", "avx512", "cuda"
  // How many vocabulary blocks of logits to compute before their softmax sums. One on a CPU, so
  // that the logits are still in the cache; all on a device.
  std::int64_t head_blocks;
#define TROUPE_OP(result, name, parameters) result(*name) parameters;
#include "kernels/ops.def"
};

}  // namespace troupe::kernels
