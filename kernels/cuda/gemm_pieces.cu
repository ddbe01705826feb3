// dX = dY W with k cut into pieces: f32 multiply-adds, one chain per output and piece. Bound by the
// multiply-adds. A thread has 8 x 8 outputs in registers and makes 4 reads of 16 bytes from shared
// memory per 64 multiply-adds, without bank conflicts. Tiles of 8 steps of k are double buffered. A
// is transposed through registers; B is copied asynchronously. At its end a piece is added to C in
// memory, so pieces cost no registers. Nothing is added that the reference does not add.
// Where C has too few tiles for all multiprocessors (few rows, and a vocabulary as k), blocks take
// a piece each and leave its sums in the workspace; a second kernel adds them to C in order.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.cuh"
#include "kernels/cuda/primitives.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kDepth = 8;  // steps of k per tile

struct Part {
  Range rows, columns;
};

// The sums of some pieces, [piece][row][column of the part], for pieces from `first` on.
struct PieceSums {
  float* data = nullptr;
  std::int64_t first = 0, rows = 0, columns = 0;

  __device__ float* of(std::int64_t piece) const { return data + piece * rows * columns; }
};

// A block computes kM x kN outputs with kM kN / 64 threads. kWide: reads rows 16 bytes at a time.
// kApart: of one piece, into `sums`, instead of all pieces, into C.
template <int kM, int kN, bool kWide, bool kApart>
class Tile {
 public:
  static constexpr int kThreads = kM * kN / 64;
  static constexpr int kStride = kM + 4;  // row stride of A in shared memory

  struct Shared {
    float a[2][kDepth][kStride];
    float b[2][kDepth][kN];
  };

  __device__ Tile(const PieceGemm& g, const Part& part, const PieceSums& sums, Shared& shared)
      : g_(g),
        sums_(sums),
        shared_(shared),
        m_(part.rows.begin + std::int64_t{blockIdx.y} * kM),
        n_(part.columns.begin + std::int64_t{blockIdx.x} * kN),
        rows_(static_cast<int>(part.rows.end - m_ < kM ? part.rows.end - m_ : kM)),
        columns_(static_cast<int>(part.columns.end - n_ < kN ? part.columns.end - n_ : kN)) {
    const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
    y_ = (warp / (kN / 64) * 4 + lane / 8) * 4;
    x_ = (warp % (kN / 64) * 8 + lane % 8) * 4;
  }

  __device__ void run() {
    clear();
    const std::int64_t begin = kApart ? (sums_.first + blockIdx.z) * g_.piece : 0;
    const std::int64_t end = kApart && begin + g_.piece < g_.k ? begin + g_.piece : g_.k;
    std::int64_t k = begin;
    int depth = depth_at(k), stage = 0;
    fetch_a(k, depth);
    fetch_b(k, depth, 0);
    put_a(0);
    copy_async_wait<0>();
    __syncthreads();
    while (true) {
      const std::int64_t next = k + depth;
      const bool more = next < end;
      const int next_depth = more ? depth_at(next) : 0;
      if (more) {
        fetch_a(next, next_depth);
        fetch_b(next, next_depth, stage ^ 1);
      }
      multiply(stage, depth);
      if (!more || (!kApart && next % g_.piece == 0)) store(kApart || next <= g_.piece);
      if (!more) return;
      put_a(stage ^ 1);
      copy_async_wait<0>();
      __syncthreads();
      k = next;
      depth = next_depth;
      stage ^= 1;
    }
  }

 private:
  static constexpr int kLoadsA = kM * kDepth / kThreads, kLoadsB = kN * kDepth / kThreads;

  // The depth of the tile at k; a tile never crosses the end of a piece.
  __device__ int depth_at(std::int64_t k) const {
    std::int64_t end = k / g_.piece * g_.piece + g_.piece;
    end = end < g_.k ? end : g_.k;
    return static_cast<int>(end - k < kDepth ? end - k : kDepth);
  }
  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int j = 0; j < 8; ++j)
        sum_[i][j] = 0.0f;
  }

  __device__ void fetch_a(std::int64_t k, int depth) {
    const int thread = static_cast<int>(threadIdx.x);
    if constexpr (kWide) {
#pragma unroll
      for (int i = 0; i < kLoadsA / 4; ++i) {
        const int at = thread + i * kThreads, row = at / (kDepth / 4), d = at % (kDepth / 4) * 4;
        float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (row < rows_ && d < depth)
          value = *reinterpret_cast<const float4*>(g_.a + (m_ + row) * g_.lda + k + d);
        next_a_[4 * i] = value.x;
        next_a_[4 * i + 1] = value.y;
        next_a_[4 * i + 2] = value.z;
        next_a_[4 * i + 3] = value.w;
      }
    } else {
#pragma unroll
      for (int i = 0; i < kLoadsA; ++i) {
        const int at = thread + i * kThreads, row = at / kDepth, d = at % kDepth;
        next_a_[i] = row < rows_ && d < depth ? g_.a[(m_ + row) * g_.lda + k + d] : 0.0f;
      }
    }
  }
  __device__ void put_a(int stage) {
    const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int i = 0; i < kLoadsA; ++i) {
      const int at = kWide ? thread + i / 4 * kThreads : thread + i * kThreads;
      const int row = kWide ? at / (kDepth / 4) : at / kDepth;
      const int d = kWide ? at % (kDepth / 4) * 4 + i % 4 : at % kDepth;
      shared_.a[stage][d][row] = next_a_[i];
    }
  }
  __device__ void fetch_b(std::int64_t k, int depth, int stage) {
    const int thread = static_cast<int>(threadIdx.x);
    if constexpr (kWide) {
#pragma unroll
      for (int i = 0; i < kLoadsB / 4; ++i) {
        const int at = thread + i * kThreads, d = at / (kN / 4), column = at % (kN / 4) * 4;
        const bool there = d < depth && column < columns_;
        copy_async(&shared_.b[stage][d][column],
                   there ? g_.b + (k + d) * g_.ldb + n_ + column : g_.b, there);
      }
      copy_async_commit();
    } else {
#pragma unroll
      for (int i = 0; i < kLoadsB; ++i) {
        const int at = thread + i * kThreads, d = at / kN, column = at % kN;
        shared_.b[stage][d][column] =
            d < depth && column < columns_ ? g_.b[(k + d) * g_.ldb + n_ + column] : 0.0f;
      }
    }
  }

  __device__ void step(int stage, int d) {
    float a[8], b[8];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float4 v = *reinterpret_cast<const float4*>(&shared_.a[stage][d][half * (kM / 2) + y_]);
      const float4 w = *reinterpret_cast<const float4*>(&shared_.b[stage][d][half * (kN / 2) + x_]);
      a[4 * half] = v.x, a[4 * half + 1] = v.y, a[4 * half + 2] = v.z, a[4 * half + 3] = v.w;
      b[4 * half] = w.x, b[4 * half + 1] = w.y, b[4 * half + 2] = w.z, b[4 * half + 3] = w.w;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int j = 0; j < 8; ++j)
        sum_[i][j] = __fmaf_rn(a[i], b[j], sum_[i][j]);
  }
  // Never more than `depth` steps: adding a product of zeros would turn -0 into 0.
  __device__ void multiply(int stage, int depth) {
    if (depth == kDepth) {
#pragma unroll
      for (int d = 0; d < kDepth; ++d)
        step(stage, d);
      return;
    }
#pragma unroll 1
    for (int d = 0; d < depth; ++d)
      step(stage, d);
  }

  __device__ void store(bool first) {
    int y = y_, x = x_;
    forget(y);
    forget(x);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = i / 4 * (kM / 2) + y + i % 4;
      float* const out =
          kApart ? sums_.of(blockIdx.z) + (std::int64_t{blockIdx.y} * kM + row) * sums_.columns +
                       std::int64_t{blockIdx.x} * kN
                 : g_.c + (m_ + row) * g_.ldc + n_;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const int column = j / 4 * (kN / 2) + x + j % 4;
        if (row < rows_ && column < columns_)
          out[column] = first ? sum_[i][j] : out[column] + sum_[i][j];
      }
    }
    clear();
  }

  const PieceGemm& g_;
  const PieceSums& sums_;
  Shared& shared_;
  const std::int64_t m_, n_;
  const int rows_, columns_;  // of C, in this tile
  int y_, x_;                 // the thread's outputs: 4 from y_, 4 from kM / 2 + y_; same for x_
  float sum_[8][8];
  float next_a_[kLoadsA];
};

template <int kM, int kN, bool kWide, bool kApart>
__global__ void __launch_bounds__(kM* kN / 64, (kWide ? 512 : 256) / (kM * kN / 64))
    pieces_kernel(const __grid_constant__ PieceGemm g,
                  const __grid_constant__ Part part,
                  const __grid_constant__ PieceSums sums) {
  using Block = Tile<kM, kN, kWide, kApart>;
  auto& shared = *reinterpret_cast<typename Block::Shared*>(dynamic_shared());
  Block(g, part, sums, shared).run();
}

constexpr int kAddThreads = 256;

// Adds the sums of `count` pieces to C, ascending; a thread has one column of a row.
__global__ void __launch_bounds__(kAddThreads)
    add_pieces_kernel(PieceGemm g, Part part, PieceSums sums, int count) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kAddThreads + threadIdx.x;
  if (at >= sums.rows * sums.columns) return;
  float* const out = g.c + (part.rows.begin + at / sums.columns) * g.ldc + part.columns.begin +
                     at % sums.columns;
  float sum = sums.first > 0 ? *out : 0.0f;
  for (int piece = 0; piece < count; ++piece) {
    const float next = sums.of(piece)[at];
    sum = sums.first + piece == 0 ? next : sum + next;
  }
  *out = sum;
}

template <int kM, int kN, bool kWide, bool kApart>
void start(const PieceGemm& g, const Part& part, const PieceSums& sums, std::int64_t pieces) {
  const dim3 grid(blocks_for(part.columns.size(), kN), blocks_for(part.rows.size(), kM),
                  static_cast<unsigned>(pieces));
  launch("gemm_in_pieces", pieces_kernel<kM, kN, kWide, kApart>, grid, kM * kN / 64,
         sizeof(typename Tile<kM, kN, kWide, kApart>::Shared), g, part, sums);
}

// How many of at most `most` pieces at a time keep the multiprocessors busiest, with two blocks
// each: the fewest of those that leave the smallest share of them idle.
std::int64_t best_count(std::int64_t tiles, std::int64_t most, std::int64_t processors) {
  std::int64_t best = 1, best_blocks = 0, best_room = 1;
  for (std::int64_t count = 1; count <= most; ++count) {
    const std::int64_t blocks = tiles * count, wave = 2 * processors;
    const std::int64_t room = (blocks + wave - 1) / wave * wave;
    if (blocks * best_room <= best_blocks * room) continue;
    best = count, best_blocks = blocks, best_room = room;
  }
  return best;
}

// Pieces side by side, `count` at a time.
template <bool kWide>
void start_apart(const PieceGemm& g, const Part& part, std::int64_t pieces, std::int64_t count) {
  PieceSums sums{static_cast<float*>(current_device().workspace.data), 0, part.rows.size(),
                 part.columns.size()};
  for (; sums.first < pieces; sums.first += count) {
    const std::int64_t now = pieces - sums.first < count ? pieces - sums.first : count;
    start<128, 128, kWide, true>(g, part, sums, now);
    launch("gemm_in_pieces", add_pieces_kernel, blocks_for(sums.rows * sums.columns, kAddThreads),
           kAddThreads, 0, g, part, sums, static_cast<int>(now));
  }
}

template <bool kWide>
void start_any(const PieceGemm& g, const Part& part) {
  const Current& device = current_device();
  const std::int64_t rows = part.rows.size(), columns = part.columns.size();
  const std::int64_t tiles = std::int64_t{blocks_for(rows, 128)} * blocks_for(columns, 128);
  const std::int64_t pieces = (g.k + g.piece - 1) / g.piece;
  const auto bytes = static_cast<std::size_t>(rows * columns) * sizeof(float);
  const auto room = static_cast<std::int64_t>(device.workspace.bytes / bytes);
  if (tiles < 2 * device.multiprocessors && room > 1 && pieces > 1) {
    const std::int64_t most = pieces < room ? pieces : room;
    return start_apart<kWide>(g, part, pieces, best_count(tiles, most, device.multiprocessors));
  }
  if (tiles < device.multiprocessors)
    start<64, 64, kWide, false>(g, part, {}, 1);
  else
    start<128, 128, kWide, false>(g, part, {}, 1);
}

constexpr std::int64_t kRowsMax = 65535 * 64;  // limit of the grid's second dimension

bool wide(const PieceGemm& g, std::int64_t n_end) {
  const auto address =
      reinterpret_cast<std::uintptr_t>(g.a) | reinterpret_cast<std::uintptr_t>(g.b);
  return address % 16 == 0 && (g.lda | g.ldb | g.k | g.piece | n_end) % 4 == 0;
}

}  // namespace

void gemm_in_pieces(const PieceGemm& g, Range rows, Range columns) {
  if (columns.empty() || g.k <= 0) return;
  for (; !rows.empty(); rows.begin += kRowsMax) {
    const Part part{{rows.begin, rows.size() < kRowsMax ? rows.end : rows.begin + kRowsMax},
                    columns};
    wide(g, columns.end) ? start_any<true>(g, part) : start_any<false>(g, part);
  }
}

}  // namespace troupe::kernels::cuda
