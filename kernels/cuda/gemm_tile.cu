// Products of many rows, with packed or plain operands. Bound by the multiply-adds. A block has a
// tile of C in registers, TM x TN outputs per thread. Slabs of k pass through shared memory; the
// next one is read into registers meanwhile. Slabs are stored as f32, with the columns (for A: the
// rows) of one k adjacent. Each output is one chain over ascending k.
#include "kernels/cuda/gemm.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/panels.cuh"

namespace troupe::kernels::cuda {
namespace {

// Warps of 4 x 8 threads, WM x WN of them. The 32 threads of a warp read four different pieces of A
// and eight of B, of 16 bytes each, without bank conflicts.
template <int TM_, int TN_, int WM, int WN, int Slab, int Blocks>
struct Shape {
  static constexpr int TM = TM_, TN = TN_, kWarpsN = WN, kSlab = Slab, kBlocks = Blocks;
  static constexpr int kThreads = 32 * WM * WN;
  static constexpr int kM = WM * 4 * TM, kN = WN * 8 * TN;
  static constexpr int kRowsPad = kM + 4, kColumnsPad = kN + 16;
};
using Large = Shape<8, 8, 4, 2, 8, 2>;    // 128 x 128
using Middle = Shape<8, 4, 2, 2, 16, 4>;  // 64 x 64
using Small = Shape<4, 4, 4, 1, 16, 4>;   // 64 x 32

enum class From : std::uint8_t { kF32, kBf16, kInt8, kPlain };

template <class S, From kFrom>
class Slabs {
 public:
  __device__ Slabs(const GemmPart& p, std::int64_t m, std::int64_t n) : p_(p), m_(m), n_(n) {}

  // Reads the slab that starts at k into registers; zeros beyond the operands.
  __device__ void read(std::int64_t k) {
#pragma unroll
    for (int i = 0; i < kReadsA; ++i)
      a_[i] = p_.g.a_by_columns ? a_along_m(k, piece(i)) : a_along_k(k, piece(i));
#pragma unroll
    for (int i = 0; i < kReadsB; ++i)
      if (kPiecesB % S::kThreads == 0 || piece(i) < kPiecesB) b_[i] = b_piece(k, piece(i));
  }
  __device__ void store(float (*a)[S::kRowsPad], float (*b)[S::kColumnsPad]) const {
#pragma unroll
    for (int i = 0; i < kReadsA; ++i) {
      if (p_.g.a_by_columns) {
        const int at = piece(i) / (S::kM / 4), row = piece(i) % (S::kM / 4) * 4;
        *reinterpret_cast<float4*>(&a[at][row]) = a_[i];
      } else {
        const int row = piece(i) / (S::kSlab / 4), at = piece(i) % (S::kSlab / 4) * 4;
        a[at][row] = a_[i].x;
        a[at + 1][row] = a_[i].y;
        a[at + 2][row] = a_[i].z;
        a[at + 3][row] = a_[i].w;
      }
    }
#pragma unroll
    for (int i = 0; i < kReadsB; ++i)
      if (kPiecesB % S::kThreads == 0 || piece(i) < kPiecesB) store_b(b, piece(i), b_[i]);
  }

 private:
  // Pieces of 16 bytes; of B in its storage dtype.
  static constexpr int kPiecesA = S::kM * S::kSlab / 4;
  static constexpr int kPerPiece = kFrom == From::kBf16 ? 8 : kFrom == From::kInt8 ? 16 : 4;
  static constexpr int kPiecesB = S::kN * S::kSlab / kPerPiece;
  static constexpr int kReadsA = kPiecesA / S::kThreads;
  static constexpr int kReadsB = (kPiecesB + S::kThreads - 1) / S::kThreads;
  static_assert(kPiecesA % S::kThreads == 0);
  static constexpr int kDepth = kFrom == From::kBf16 ? 2 : kFrom == From::kInt8 ? 4 : 1;
  static constexpr int kLines = S::kSlab / kDepth;  // of a panel, per slab

  __device__ static int piece(int i) {
    return i * S::kThreads + static_cast<int>(threadIdx.x);
  }

  __device__ static float4 four(const float* from, std::int64_t count, bool vectors) {
    if (vectors && count >= 4) return *reinterpret_cast<const float4*>(from);
    float4 out = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (count > 0) out.x = from[0];
    if (count > 1) out.y = from[1];
    if (count > 2) out.z = from[2];
    if (count > 3) out.w = from[3];
    return out;
  }
  __device__ float4 a_along_k(std::int64_t k, int piece) const {
    const std::int64_t m = m_ + piece / (S::kSlab / 4);
    const std::int64_t at = k + piece % (S::kSlab / 4) * 4;
    return four(p_.g.a + m * p_.g.lda + at, m < p_.m_end ? p_.g.k - at : 0, p_.a_vectors);
  }
  __device__ float4 a_along_m(std::int64_t k, int piece) const {
    const std::int64_t at = k + piece / (S::kM / 4);
    const std::int64_t m = m_ + piece % (S::kM / 4) * 4;
    return four(p_.g.a + at * p_.g.lda + m, at < p_.g.k ? p_.m_end - m : 0, p_.a_vectors);
  }
  __device__ float4 b_piece(std::int64_t k, int piece) const {
    if constexpr (kFrom == From::kPlain) {
      const std::int64_t at = k + piece / (S::kN / 4), n = n_ + piece % (S::kN / 4) * 4;
      return four(static_cast<const float*>(p_.g.b.data) + at * p_.g.ldb + n,
                  at < p_.g.k ? p_.g.n - n : 0, p_.b_vectors);
    } else {
      const std::int64_t panel = n_ / kPanel + piece / (kLines * 4);
      const std::int64_t line = k / kDepth + piece / 4 % kLines;
      const std::int64_t lines = (p_.g.k + kDepth - 1) / kDepth;
      if (panel >= p_.panel_end || line >= lines) return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      return *reinterpret_cast<const float4*>(static_cast<const unsigned char*>(p_.g.b.data) +
                                              (panel * lines + line) * kLineBytes + piece % 4 * 16);
    }
  }
  __device__ static void store_b(float (*b)[S::kColumnsPad], int piece, const float4& x) {
    const int part = piece % 4;  // quarter of the line
    const int line = piece / 4 % kLines, column = piece / (kLines * 4) * static_cast<int>(kPanel);
    if constexpr (kFrom == From::kPlain) {
      *reinterpret_cast<float4*>(&b[piece / (S::kN / 4)][piece % (S::kN / 4) * 4]) = x;
    } else if constexpr (kFrom == From::kF32) {
      *reinterpret_cast<float4*>(&b[line][column + part * 4]) = x;
    } else {
      const std::uint32_t word[4] = {__float_as_uint(x.x), __float_as_uint(x.y),
                                     __float_as_uint(x.z), __float_as_uint(x.w)};
      if constexpr (kFrom == From::kBf16) {  // k and k + 1 of four columns
        *reinterpret_cast<float4*>(&b[line * 2][column + part * 4]) =
            make_float4(low_bf16(word[0]), low_bf16(word[1]), low_bf16(word[2]), low_bf16(word[3]));
        *reinterpret_cast<float4*>(&b[line * 2 + 1][column + part * 4]) = make_float4(
            high_bf16(word[0]), high_bf16(word[1]), high_bf16(word[2]), high_bf16(word[3]));
      } else {  // sixteen columns of one k
#pragma unroll
        for (int i = 0; i < 4; ++i)
          *reinterpret_cast<float4*>(&b[line * 4 + part][column + i * 4]) = make_float4(
              int8_of(word[i], 0), int8_of(word[i], 1), int8_of(word[i], 2), int8_of(word[i], 3));
      }
    }
  }
  __device__ static float int8_of(std::uint32_t word, int i) {
    return static_cast<float>(static_cast<signed char>(word >> (8 * i) & 0xffu));
  }

  const GemmPart& p_;
  const std::int64_t m_, n_;
  float4 a_[kReadsA], b_[kReadsB];
};

template <class S>
struct Outputs {
  float sum[S::TM][S::TN];
  int row, column;  // in the tile: where the thread's first pieces start

  __device__ Outputs() {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    row = warp / S::kWarpsN * (4 * S::TM) + lane / 8 * 4;
    column = warp % S::kWarpsN * (8 * S::TN) + lane % 8 * 4;
  }
  // Calls `each(m, n, sum)` for the thread's outputs, with indices within the tile.
  template <class Each>
  __device__ void for_all(const Each& each) {
#pragma unroll
    for (int i = 0; i < S::TM; ++i)
#pragma unroll
      for (int j = 0; j < S::TN; ++j)
        each(row + i / 4 * 16 + i % 4, column + j / 4 * 32 + j % 4, sum[i][j]);
  }
  __device__ void add(const float* a, const float* b) {
    float x[S::TM], y[S::TN];
#pragma unroll
    for (int i = 0; i < S::TM; i += 4)
      *reinterpret_cast<float4*>(x + i) = *reinterpret_cast<const float4*>(a + row + i / 4 * 16);
#pragma unroll
    for (int j = 0; j < S::TN; j += 4)
      *reinterpret_cast<float4*>(y + j) = *reinterpret_cast<const float4*>(b + column + j / 4 * 32);
#pragma unroll
    for (int i = 0; i < S::TM; ++i)
#pragma unroll
      for (int j = 0; j < S::TN; ++j)
        sum[i][j] = __fmaf_rn(x[i], y[j], sum[i][j]);
  }
};

template <class S, From kFrom>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks) tile_kernel(GemmPart p) {
  __align__(16) __shared__ float a[2][S::kSlab][S::kRowsPad];
  __align__(16) __shared__ float b[2][S::kSlab][S::kColumnsPad];
  const std::int64_t m = p.m_begin + std::int64_t{blockIdx.x} * S::kM;
  const std::int64_t n = p.panel_begin * kPanel + std::int64_t{blockIdx.y} * S::kN;
  const std::int64_t n_end = p.column_end();
  Outputs<S> outputs;
  outputs.for_all([&](int i, int j, float& sum) {
    sum = m + i < p.m_end && n + j < n_end ? chain_start(p.g, m + i, n + j) : 0.0f;
  });
  Slabs<S, kFrom> slabs(p, m, n);
  slabs.read(0);
  slabs.store(a[0], b[0]);
  __syncthreads();
  for (std::int64_t k = 0, now = 0; k < p.g.k; k += S::kSlab, now ^= 1) {
    const bool more = k + S::kSlab < p.g.k;
    if (more) slabs.read(k + S::kSlab);
    if (k + S::kSlab <= p.g.k) {
#pragma unroll
      for (int i = 0; i < S::kSlab; ++i)
        outputs.add(a[now][i], b[now][i]);
    } else {
#pragma unroll 1
      for (int i = 0; i < static_cast<int>(p.g.k - k); ++i)
        outputs.add(a[now][i], b[now][i]);
    }
    // Since the last barrier no thread reads the other buffer.
    if (more) slabs.store(a[now ^ 1], b[now ^ 1]);
    __syncthreads();
  }
  outputs.for_all([&](int i, int j, float& sum) {
    if (m + i < p.m_end && n + j < n_end) chain_end(p.g, m + i, n + j, sum);
  });
}

template <class S>
dim3 tiles_of(const GemmPart& p) {
  return dim3(blocks_for(p.rows(), S::kM), blocks_for(p.panels() * kPanel, S::kN));
}

template <class S, From kFrom>
void start(const GemmPart& p) {
  launch("gemm_tiles", tile_kernel<S, kFrom>, tiles_of<S>(p), S::kThreads, 0, p);
}

template <class S>
void start_shape(const GemmPart& p) {
  if (p.g.ldb > 0) return start<S, From::kPlain>(p);
  if (p.g.b.dtype == PanelDtype::kBf16) return start<S, From::kBf16>(p);
  if constexpr (!std::is_same_v<S, Large>)
    if (p.g.b.dtype == PanelDtype::kInt8) return start<S, From::kInt8>(p);
  start<S, From::kF32>(p);
}

template <class S>
bool fills(const GemmPart& p) {
  return enough_tiles(p.rows(), p.panels() * kPanel, S::kM, S::kN);
}

}  // namespace

// Uses the largest tiles that still occupy all multiprocessors. Unpacking int8 leaves too few
// registers for the largest.
void gemm_tiles(const GemmPart& p) {
  const bool int8 = p.g.ldb == 0 && p.g.b.dtype == PanelDtype::kInt8;
  if (fills<Large>(p) && !int8) return start_shape<Large>(p);
  if (fills<Middle>(p)) return start_shape<Middle>(p);
  start_shape<Small>(p);
}

}  // namespace troupe::kernels::cuda
