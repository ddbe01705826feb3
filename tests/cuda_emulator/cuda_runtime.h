// A CUDA device made of plain C++, so that kernels/cuda can be run and tested where there is no
// GPU: the same .cu files, compiled by g++ with this header in the place of NVIDIA's. Every thread
// of a block is a fiber; barriers and warp functions switch between them; work on a stream is put
// off until somebody waits, as on a device. It checks what a device does not:
// - barriers that some threads miss; misaligned vectors (they trap)
// - shared memory that is read before it is written (it starts as NaN), also by a copy that nobody
//   has waited for (its destination is NaN until then)
// - host pointers given to kernels, and device memory touched by the host (mode `guard`)
// - dependence on the order of threads and blocks (`reverse`: last first; `random:N`: as the seed N
//   says, thread by thread or by whole warps)
// - the rules of shared memory above 48 KiB, of recorded graphs, and of the thread's present device
// - memory that is freed while another process has it open (it ends the process)
// - a stream that is destroyed while another library's work on it is under way (hooks.hpp)
// `fail:N` lets the N-th grid and everything after it fail, as an illegal address does; `hang:N`
// lets it never end, `skip:N` lets it do nothing; `devices:N` has N devices, `none` has none;
// `sm:N`: devices are of compute capability N / 10 (90 if it is not given); `older:N`: device N is
// of 8.0; `small` has 99 KiB of shared memory. Modes are the words of TROUPE_CUDA_EMULATOR, with
// commas between. Tensor cores have the bits of such a device (kernels/tensor_core.hpp). It is
// slow. Only what our kernels use is here.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <tuple>
#include <utility>

#define TROUPE_CUDA_EMULATED 1
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __constant__ static
#define __align__(n) alignas(n)
#define __grid_constant__

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float2 make_float2(float x, float y) {
  return {x, y};
}
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}
inline uint2 make_uint2(unsigned x, unsigned y) {
  return {x, y};
}
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}

// ---- inside kernels ----

namespace troupe_emulator {

struct Thread {
  uint3 thread{}, block{};
  dim3 threads, blocks;
};
extern Thread current;                 // of the fiber that runs
extern unsigned char* dynamic_shared;  // of the block that runs

void block_barrier();
// A copy to shared memory that is done when its thread waits for it; `from` null: zeros. Copies
// belong to the group that the thread commits next; it waits for all groups but the `pending` last.
void copy_later(void* to, const void* from, std::size_t bytes);
void commit_copies();
void wait_for_copies(std::uint64_t pending);
// All lanes of the warp named in `mask` put in a value of up to 8 bytes and get everybody's.
struct WarpValues {
  std::uint64_t of[32];
};
const WarpValues& exchange(unsigned mask, std::uint64_t value);
unsigned lane();
extern int compute_major;  // of the device whose grid runs

template <class T>
std::uint64_t pack(T value) {
  static_assert(sizeof(T) <= 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}
template <class T>
T unpack(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace troupe_emulator

inline auto& threadIdx = troupe_emulator::current.thread;
inline auto& blockIdx = troupe_emulator::current.block;
inline auto& blockDim = troupe_emulator::current.threads;
inline auto& gridDim = troupe_emulator::current.blocks;
inline constexpr int warpSize = 32;

inline void __syncthreads() {
  troupe_emulator::block_barrier();
}
inline void __syncwarp(unsigned mask = 0xffffffffu) {
  troupe_emulator::exchange(mask, 0);
}
template <class T>
T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
  const auto& all = troupe_emulator::exchange(mask, troupe_emulator::pack(value));
  const int base = static_cast<int>(troupe_emulator::lane()) / width * width;
  return troupe_emulator::unpack<T>(all.of[base + (from & (width - 1))]);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32) {
  const int me = static_cast<int>(troupe_emulator::lane());
  (void)width;
  return troupe_emulator::unpack<T>(
      troupe_emulator::exchange(mask, troupe_emulator::pack(value)).of[me ^ with]);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
  const int me = static_cast<int>(troupe_emulator::lane());
  const int from = me % width + static_cast<int>(by) < width ? me + static_cast<int>(by) : me;
  return troupe_emulator::unpack<T>(
      troupe_emulator::exchange(mask, troupe_emulator::pack(value)).of[from]);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  const auto& all = troupe_emulator::exchange(mask, predicate != 0 ? 1 : 0);
  unsigned bits = 0;
  for (unsigned i = 0; i < 32; ++i)
    if ((mask >> i & 1u) != 0 && all.of[i] != 0) bits |= 1u << i;
  return bits;
}
inline int __any_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) != 0;
}
inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) == mask;
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline int __popc(unsigned x) {
  return __builtin_popcount(x);
}

template <class T>
T __ldg(const T* p) {
  return *p;
}
template <class T>
T __ldcs(const T* p) {
  return *p;
}
inline float __fmaf_rn(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
inline float __fmul_rn(float a, float b) {
  return a * b;
}
inline float __fadd_rn(float a, float b) {
  return a + b;
}
inline float __fdiv_rn(float a, float b) {
  return a / b;
}
inline float __fsqrt_rn(float x) {
  return __builtin_sqrtf(x);
}
inline unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}
inline float __uint_as_float(unsigned x) {
  return std::bit_cast<float>(x);
}
inline int __float_as_int(float x) {
  return std::bit_cast<int>(x);
}
inline float __int_as_float(int x) {
  return std::bit_cast<float>(x);
}
template <class T>
T atomicAdd(T* at, T value) {
  const T before = *at;
  *at = before + value;
  return before;
}
inline unsigned atomicOr(unsigned* at, unsigned value) {
  const unsigned before = *at;
  *at = before | value;
  return before;
}

// ---- outside: the part of the runtime that we use ----

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
};
struct troupe_emulator_stream;
struct troupe_emulator_graph;
struct troupe_emulator_event;
using cudaEvent_t = troupe_emulator_event*;
using cudaStream_t = troupe_emulator_stream*;
using cudaGraph_t = troupe_emulator_graph*;
using cudaGraphExec_t = troupe_emulator_graph*;
struct cudaIpcMemHandle_t {
  char reserved[64];
};
struct cudaUUID_t {
  char bytes[16];
};
struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  std::size_t totalGlobalMem;
  int major, minor, multiProcessorCount, l2CacheSize;
  std::size_t sharedMemPerBlockOptin;
};
enum cudaMemcpyKind {
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
struct cudaFuncAttributes {
  std::size_t sharedSizeBytes;
};
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
inline constexpr unsigned cudaStreamNonBlocking = 1, cudaIpcMemLazyEnablePeerAccess = 1;
inline constexpr unsigned cudaEventDisableTiming = 2;
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int device);
cudaError_t cudaDeviceCanAccessPeer(int* yes, int device, int peer);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
const char* cudaGetErrorString(cudaError_t code);
cudaError_t cudaGetLastError();
cudaError_t cudaMalloc(void** out, std::size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaMallocHost(void** out, std::size_t bytes);
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaMemcpyAsync(
    void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* out, void* memory);
cudaError_t cudaIpcOpenMemHandle(void** out, cudaIpcMemHandle_t handle, unsigned flags);
cudaError_t cudaIpcCloseMemHandle(void* memory);

// `kernel` is state of the whole process, for all threads.
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value);
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out, const void* kernel);

namespace troupe_emulator {
// Puts a grid at the end of the stream's work.
cudaError_t submit(const cudaLaunchConfig_t& config,
                   const void* kernel,
                   std::function<void()> thread);
// Ends the process when an argument holds a pointer to the host's memory.
void check_argument(const void* bytes, std::size_t size);
// Bytes of shared memory that a block may ask for: 227 KiB as on an H100, or the 99 KiB of smaller
// devices (TROUPE_CUDA_EMULATOR=small).
std::size_t shared_limit();
}  // namespace troupe_emulator

template <class... Params, class... Args>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config,
                               void (*kernel)(Params...),
                               Args&&... args) {
  std::tuple<Params...> values(static_cast<Params>(args)...);
  // Padding holds whatever was there, which may look like a pointer.
  const auto look = [](auto& value) {
    __builtin_clear_padding(&value);
    troupe_emulator::check_argument(&value, sizeof(value));
  };
  std::apply([&](auto&... all) { (look(all), ...); }, values);
  return troupe_emulator::submit(*config, reinterpret_cast<const void*>(kernel),
                                 [kernel, values] { std::apply(kernel, values); });
}
