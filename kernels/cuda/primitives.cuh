// Primitives that nvcc and the emulator of tests/cuda_emulator need in two versions: dynamic shared
// memory, copies that bypass the registers, and tensor-core products with the loads that feed them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#ifdef TROUPE_CUDA_EMULATED
#include "kernels/tensor_core.hpp"
#endif

namespace troupe::kernels::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;

#ifdef TROUPE_CUDA_EMULATED

inline unsigned char* dynamic_shared() {
  return troupe_emulator::dynamic_shared;
}

// Copies 16 bytes from global to shared memory, or writes zeros if not `valid`. Both addresses must
// be multiples of 16.
inline void copy_async(void* shared, const void* global, bool valid = true) {
  const auto places =
      reinterpret_cast<std::uintptr_t>(shared) | reinterpret_cast<std::uintptr_t>(global);
  if (places % 16 != 0) std::abort();
  troupe_emulator::copy_later(shared, valid ? global : nullptr, 16);
}
// Copies 4 bytes; both addresses must be multiples of 4.
inline void copy_async_word(void* shared, const void* global) {
  troupe_emulator::copy_later(shared, global, 4);
}
inline void copy_async_commit() {
  troupe_emulator::commit_copies();
}
// Hides the value from the compiler, so that expressions of it are recomputed after this point
// instead of held in registers through a loop.
inline void forget(int&) {}
// Waits until at most `Pending` of the committed groups are in flight.
template <int Pending>
inline void copy_async_wait() {
  troupe_emulator::wait_for_copies(Pending);
}

// A barrier of all threads of the block, `threads` of them, who may wait at different places of the
// program: at __syncthreads all would have to be at the same.
inline void all_meet(unsigned) {
  troupe_emulator::block_barrier();
}

// Rounds two f32 to bfloat16, nearest, ties to even; `low` goes to the low half.
inline std::uint32_t pair_of_bf16(float low, float high) {
  const auto rounded = [](float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return x != x ? 0x7fffu : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  };
  return rounded(low) | rounded(high) << 16;
}

// Loads four 8 x 8 matrices of 16-bit numbers from shared memory. Lane i gives the address of row i
// % 8 of matrix i / 8, a multiple of 16. Lane i gets, of each matrix, numbers 2 (i % 4) and 2 (i %
// 4)
// + 1 of row i / 4; `kTurned`: of column i / 4.
template <bool kTurned>
inline void load_matrices(std::uint32_t (&to)[4], const void* row) {
  const auto place = reinterpret_cast<std::uintptr_t>(row);
  if (place % 16 != 0) std::abort();
  const auto& rows = troupe_emulator::exchange(kAllLanes, place);
  const unsigned major = troupe_emulator::lane() / 4, minor = troupe_emulator::lane() % 4 * 2;
  for (unsigned i = 0; i < 4; ++i) {
    std::uint16_t pair[2];
    for (unsigned j = 0; j < 2; ++j) {
      const unsigned r = kTurned ? minor + j : major, c = kTurned ? major : minor + j;
      std::memcpy(&pair[j], reinterpret_cast<const char*>(rows.of[i * 8 + r]) + c * 2, 2);
    }
    to[i] = pair[0] | std::uint32_t{pair[1]} << 16;
  }
}

// d += A B for a warp: A [16, 16] row-major and B [16, 8] column-major, both bfloat16 in pairs, and
// d [16, 8] f32, all in the fragment layout of PTX's mma.m16n8k16.
inline void mma_bf16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  using Numbers = std::array<std::uint16_t, kTensorDepth>;
  // Takes the numbers of k and k + 1 from the word that another lane put in.
  const auto take = [](std::uint64_t words, int which, Numbers& to, int k) {
    const auto pair = static_cast<std::uint32_t>(words >> (32 * which));
    to[static_cast<std::size_t>(k)] = static_cast<std::uint16_t>(pair);
    to[static_cast<std::size_t>(k) + 1] = static_cast<std::uint16_t>(pair >> 16);
  };
  const auto put = [](std::uint32_t low, std::uint32_t high) -> auto& {
    return troupe_emulator::exchange(kAllLanes, std::uint64_t{low} | std::uint64_t{high} << 32);
  };
  const int group = static_cast<int>(troupe_emulator::lane()) / 4;
  const int quad = static_cast<int>(troupe_emulator::lane()) % 4;
  Numbers of_rows[2], of_columns[2];  // the lane's rows of A and columns of B
  for (int k = 0; k < 2; ++k) {
    const auto& words = put(a[2 * k], a[2 * k + 1]);
    for (int i = 0; i < 4; ++i)
      for (int row = 0; row < 2; ++row)
        take(words.of[group * 4 + i], row, of_rows[row], k * 8 + i * 2);
  }
  const auto& words = put(b[0], b[1]);
  for (int column = 0; column < 2; ++column)
    for (int i = 0; i < 4; ++i)
      for (int k = 0; k < 2; ++k)
        take(words.of[(quad * 2 + column) * 4 + i], k, of_columns[column], k * 8 + i * 2);
  const TensorFactors rows[2] = {TensorFactors(of_rows[0]), TensorFactors(of_rows[1])};
  const TensorFactors columns[2] = {TensorFactors(of_columns[0]), TensorFactors(of_columns[1])};
  const TensorCore& core = tensor_core_of(troupe_emulator::compute_major);
  for (int i = 0; i < 4; ++i)
    d[i] = std::bit_cast<float>(
        tensor_core_sum(core, std::bit_cast<std::uint32_t>(d[i]), rows[i / 2], columns[i % 2]));
}

#else

__device__ inline unsigned char* dynamic_shared() {
  extern __shared__ __align__(128) unsigned char troupe_dynamic_shared[];
  return troupe_dynamic_shared;
}

__device__ inline void copy_async(void* shared, const void* global, bool valid = true) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(global),
               "r"(valid ? 16 : 0)
               : "memory");
}
__device__ inline void copy_async_word(void* shared, const void* global) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n" ::"r"(to), "l"(global) : "memory");
}
__device__ inline void forget(int& value) {
  asm volatile("" : "+r"(value));
}
__device__ inline void copy_async_commit() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}
template <int Pending>
__device__ inline void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(Pending) : "memory");
}

__device__ inline void all_meet(unsigned threads) {
  asm volatile("barrier.sync 1, %0;\n" ::"r"(threads) : "memory");
}

__device__ inline std::uint32_t pair_of_bf16(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

template <bool kTurned>
__device__ inline void load_matrices(std::uint32_t (&to)[4], const void* row) {
  const auto from = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (kTurned)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

__device__ inline void mma_bf16(float (&d)[4],
                                const std::uint32_t (&a)[4],
                                const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#endif

}  // namespace troupe::kernels::cuda
