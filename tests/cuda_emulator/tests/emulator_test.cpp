// What the emulated device must notice, or tests on it would prove little: shown on kernels that
// are wrong on purpose. Compiled with the emulator itself (no kernels of ours).
#include "kernels/cuda/primitives.cuh"
#include "tests/cuda_emulator/device.hpp"
#include "tests/cuda_emulator/tests/fixture.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>

namespace troupe_emulator::test {
namespace {

TEST_F(Emulator, RunsBlocksWithBarriers) {
  float* out = room(128);
  ASSERT_EQ(start(reverse_kernel, 2, 64, out), cudaSuccess);
  const auto got = read(out, 128);
  for (int i = 0; i < 128; ++i)
    EXPECT_EQ(got[static_cast<std::size_t>(i)], static_cast<float>(i / 64 * 100 + 63 - i % 64));
  cudaFree(out);
}

void lanes_kernel(float* out) {
  float sum = static_cast<float>(threadIdx.x);
  for (int step = 16; step > 0; step /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, step);
  const unsigned odd = __ballot_sync(0xffffffffu, threadIdx.x % 2);
  out[threadIdx.x] = sum + (odd == 0xaaaaaaaau ? 1000.0f : 0.0f);
}

TEST_F(Emulator, WarpsExchangeValues) {
  float* out = room(64);
  ASSERT_EQ(start(lanes_kernel, 1, 64, out), cudaSuccess);
  const auto got = read(out, 64);
  EXPECT_EQ(got[5], 1000.0f + 31 * 16);             // 0 + ... + 31
  EXPECT_EQ(got[40], 1000.0f + 31 * 16 + 32 * 32);  // 32 + ... + 63
  cudaFree(out);
}

// Row r of matrix i holds 64 i + 8 r and the seven numbers after it.
void matrices_kernel(float* out) {
  __align__(16) __shared__ std::uint16_t tile[32][8];
  for (unsigned i = 0; i < 8; ++i)
    tile[threadIdx.x][i] = static_cast<std::uint16_t>(threadIdx.x * 8 + i);
  __syncthreads();
  std::uint32_t straight[4], turned[4];
  troupe::kernels::cuda::load_matrices<false>(straight, tile[threadIdx.x]);
  troupe::kernels::cuda::load_matrices<true>(turned, tile[threadIdx.x]);
  for (unsigned i = 0; i < 4; ++i) {
    float* const to = out + threadIdx.x * 16 + i * 4;
    to[0] = static_cast<float>(straight[i] & 0xffffu),
    to[1] = static_cast<float>(straight[i] >> 16);
    to[2] = static_cast<float>(turned[i] & 0xffffu), to[3] = static_cast<float>(turned[i] >> 16);
  }
}

TEST_F(Emulator, LoadsMatricesStraightAndTurned) {
  float* out = room(512);
  ASSERT_EQ(start(matrices_kernel, 1, 32, out), cudaSuccess);
  const auto got = read(out, 512);
  const auto of = [&](std::size_t lane, std::size_t matrix) {
    const auto at = got.begin() + static_cast<std::ptrdiff_t>(lane * 16 + matrix * 4);
    return std::vector<float>(at, at + 4);
  };
  EXPECT_EQ(of(0, 0), (std::vector<float>{0, 1, 0, 8}));
  EXPECT_EQ(of(5, 0), (std::vector<float>{10, 11, 17, 25}));       // row 1, columns 2 and 3
  EXPECT_EQ(of(31, 3), (std::vector<float>{254, 255, 247, 255}));  // row 7, columns 6 and 7
  cudaFree(out);
}

// Without the barrier: every thread reads what another has yet to write, or has written, as it
// comes.
void no_barrier_kernel(float* out) {
  auto* tile = reinterpret_cast<float*>(troupe_emulator::dynamic_shared);
  tile[threadIdx.x] = static_cast<float>(threadIdx.x);
  out[threadIdx.x] = tile[31 - threadIdx.x];
}

TEST_F(Emulator, SharedMemoryIsNanBeforeItIsWritten) {
  float* out = room(32);
  ASSERT_EQ(start(no_barrier_kernel, 1, 32, out), cudaSuccess);
  const auto got = read(out, 32);
  const auto bad = std::count_if(got.begin(), got.end(), [](float x) { return std::isnan(x); });
  EXPECT_EQ(bad, 16);
  cudaFree(out);
}

void some_miss_the_barrier(float*) {
  if (threadIdx.x < 5) __syncwarp();
  __syncthreads();
}

TEST_F(Emulator, ThreadsThatWaitInVainEndTheProcess) {
  float* out = room(32);
  EXPECT_DEATH(
      {
        start(some_miss_the_barrier, 1, 32, out);
        cudaStreamSynchronize(stream_);
      },
      "wait for each other in vain: 27 at the block's barrier, 5 in a warp function");
  cudaFree(out);
}

struct Arguments {
  std::int64_t count;
  float scale;
  const float* numbers;
};
void nothing(Arguments) {}

TEST_F(Emulator, PointersToTheHostEndTheProcess) {
  const std::vector<float> host(4);
  float* device = room(4);
  ASSERT_EQ(start(nothing, 1, 1, Arguments{4, 1.0f, device}), cudaSuccess);
  EXPECT_DEATH(start(nothing, 1, 1, Arguments{4, 1.0f, host.data()}), "pointer to the host");
  cudaFree(device);
}

TEST_F(Emulator, WorkWaitsUntilSomebodyDoes) {
  float* out = room(64);
  ASSERT_EQ(cudaMemsetAsync(out, 0, 256, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  ASSERT_EQ(start(reverse_kernel, 1, 64, out), cudaSuccess);
  EXPECT_EQ(out[0], 0.0f);  // enqueued, not done (no guard is asked for here)
  EXPECT_EQ(read(out, 64)[0], 63.0f);
  cudaFree(out);
}

TEST_F(Emulator, MemoryEndsAtTheLimit) {
  std::size_t free = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, free + 1), cudaErrorMemoryAllocation);
  ASSERT_EQ(cudaMalloc(&memory, 4096), cudaSuccess);
  std::size_t left = 0;
  cudaMemGetInfo(&left, &total);
  EXPECT_EQ(left, free - 4096);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(Emulator, CopiesWithTheWrongKindOfPointerAreRefused) {
  float* device = room(4);
  float host[4] = {};
  EXPECT_NE(cudaMemcpyAsync(device, device, 16, cudaMemcpyHostToDevice, stream_), cudaSuccess);
  EXPECT_NE(cudaMemcpyAsync(host, host, 16, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  EXPECT_NE(cudaMemsetAsync(host, 0, 16, stream_), cudaSuccess);
  cudaFree(device);
}

// Runs in a process of its own, as the modes are read once.
template <class Body>
void in_mode(const char* mode, int status, Body body) {
  EXPECT_EXIT(
      {
        setenv("TROUPE_CUDA_EMULATOR", mode, 1);
        troupe_emulator::Device::forget_modes();
        body();
        std::exit(status);
      },
      ::testing::ExitedWithCode(status), "");
}

// ---- copies to shared memory that the threads do not wait for at once

float* tile() {
  return reinterpret_cast<float*>(troupe_emulator::dynamic_shared);
}

// Each thread copies its number in a group of its own, and one more; waits for all but `kPending`
// groups; and reads the first.
template <int kPending>
void copy_kernel(const float* from, float* out) {
  float* const mine = tile() + threadIdx.x * 2;
  troupe_emulator::copy_later(mine, from + threadIdx.x, 4);
  troupe_emulator::commit_copies();
  troupe_emulator::copy_later(mine + 1, nullptr, 4);
  troupe_emulator::commit_copies();
  troupe_emulator::wait_for_copies(kPending);
  __syncthreads();
  out[threadIdx.x] = mine[0];
  out[32 + threadIdx.x] = mine[1];
}

TEST_F(Emulator, CopiesAreNanUntilTheirThreadHasWaited) {
  float* const from = room(32);
  float* const out = room(64);
  ASSERT_EQ(cudaMemsetAsync(from, 0x3f, 128, stream_), cudaSuccess);
  ASSERT_EQ(start(copy_kernel<0>, 1, 32, from, out), cudaSuccess);
  auto got = read(out, 64);
  EXPECT_FALSE(std::isnan(got[7]));
  EXPECT_EQ(got[39], 0.0f) << "without a source: zeros";
  ASSERT_EQ(start(copy_kernel<1>, 1, 32, from, out), cudaSuccess);
  got = read(out, 64);
  EXPECT_FALSE(std::isnan(got[7]));
  EXPECT_TRUE(std::isnan(got[39])) << "one group may be pending: the last";
  ASSERT_EQ(start(copy_kernel<2>, 1, 32, from, out), cudaSuccess);
  EXPECT_TRUE(std::isnan(read(out, 64)[7]));
  cudaFree(from);
  cudaFree(out);
}

// The slot is filled anew although the other half of the block may still read it.
void overwriting_kernel(const float* from, float* out) {
  if (threadIdx.x == 0) troupe_emulator::copy_later(tile(), from, 4);
  troupe_emulator::commit_copies();
  troupe_emulator::wait_for_copies(0);
  __syncthreads();
  out[threadIdx.x] = tile()[0];
  // Here a barrier is missing.
  if (threadIdx.x == 0) troupe_emulator::copy_later(tile(), from, 4);
}

TEST_F(Emulator, ACopyIntoWhatOthersStillReadIsSeen) {
  float* const from = room(1);
  float* const out = room(32);
  ASSERT_EQ(cudaMemsetAsync(from, 0, 4, stream_), cudaSuccess);
  ASSERT_EQ(start(overwriting_kernel, 1, 32, from, out), cudaSuccess);
  const auto got = read(out, 32);
  EXPECT_EQ(got[0], 0.0f);
  EXPECT_TRUE(std::isnan(got[31]));
  cudaFree(from);
  cudaFree(out);
}

// ---- the order of threads

// Which one of 64 comes last, four times.
std::vector<unsigned> last_ones(troupe_emulator::Order order) {
  std::uint64_t dice = order.seed;
  std::vector<unsigned> last;
  for (int round = 0; round < 4; ++round)
    last.push_back(troupe_emulator::in_order(64, order, dice).back());
  return last;
}

TEST(EmulatorOrder, ASeedRepeatsItselfAndOthersDiffer) {
  using troupe_emulator::Order;
  EXPECT_EQ(last_ones({Order::Kind::kForward}), std::vector<unsigned>(4, 63));
  EXPECT_EQ(last_ones({Order::Kind::kReverse}), std::vector<unsigned>(4, 0));
  const auto first = last_ones({Order::Kind::kRandom, 4});
  EXPECT_EQ(first, last_ones({Order::Kind::kRandom, 4}));
  EXPECT_NE(first, last_ones({Order::Kind::kRandom, 5}));
  std::uint64_t dice = 9;
  auto all = troupe_emulator::in_order(64, {Order::Kind::kRandom, 9}, dice);
  std::sort(all.begin(), all.end());
  std::vector<unsigned> numbers(64);
  std::iota(numbers.begin(), numbers.end(), 0u);
  EXPECT_EQ(all, numbers) << "each once";
}

// A kernel that counts on lower threads coming first is right forwards and wrong in another order.
void trusts_the_order(float* out) {
  tile()[threadIdx.x] = 1.0f;
  out[threadIdx.x] = threadIdx.x == 0 ? 1.0f : tile()[threadIdx.x - 1];
}

TEST_F(Emulator, ARandomOrderShowsWhatCountsOnOne) {
  float* const out = room(64);
  ASSERT_EQ(start(trusts_the_order, 1, 64, out), cudaSuccess);
  const auto count = [](const std::vector<float>& got) {
    return std::count_if(got.begin(), got.end(), [](float x) { return std::isnan(x); });
  };
  EXPECT_EQ(count(read(out, 64)), 0);
  cudaFree(out);
  for (const char* mode : {"random:2", "random:3"}) {
    in_mode(mode, 7, [this, count] {
      float* const again = room(64);
      start(trusts_the_order, 1, 64, again);
      if (count(read(again, 64)) == 0) std::exit(1);
    });
  }
}

// ---- rules of the runtime

void any_kernel(float*) {}
void other_kernel(float*) {}

TEST_F(Emulator, SharedMemoryAboveTheUsualIsAskedForByKernel) {
  float* const out = room(1);
  const auto of = [](auto* kernel) { return reinterpret_cast<const void*>(kernel); };
  EXPECT_EQ(start_with(49'000, any_kernel, 1, 1, out), cudaSuccess);
  EXPECT_NE(start_with(60'000, any_kernel, 1, 1, out), cudaSuccess);
  const auto attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  ASSERT_EQ(cudaFuncSetAttribute(of(any_kernel), attribute, 100'000), cudaSuccess);
  EXPECT_EQ(start_with(60'000, any_kernel, 1, 1, out), cudaSuccess);
  EXPECT_NE(start_with(60'000, other_kernel, 1, 1, out), cudaSuccess);
  // Lowered by somebody else in between.
  ASSERT_EQ(cudaFuncSetAttribute(of(any_kernel), attribute, 50'000), cudaSuccess);
  EXPECT_NE(start_with(60'000, any_kernel, 1, 1, out), cudaSuccess);
  EXPECT_NE(cudaFuncSetAttribute(of(any_kernel), attribute, 300'000), cudaSuccess);
  cudaFree(out);
}

TEST_F(Emulator, AFailedGridLeavesNothingThatWorks) {
  in_mode("fail:2", 3, [this] {
    float* const out = room(64);
    const auto expect = [](bool holds) {
      if (!holds) std::exit(1);
    };
    expect(start(reverse_kernel, 1, 64, out) == cudaSuccess);
    expect(cudaStreamSynchronize(stream_) == cudaSuccess);
    expect(start(reverse_kernel, 1, 64, out) == cudaSuccess);
    expect(cudaStreamSynchronize(stream_) == cudaErrorIllegalAddress);
    expect(start(reverse_kernel, 1, 64, out) == cudaErrorIllegalAddress);
    void* memory = nullptr;
    expect(cudaMalloc(&memory, 64) == cudaErrorIllegalAddress);
    expect(cudaMemsetAsync(out, 0, 64, stream_) == cudaErrorIllegalAddress);
  });
}

TEST_F(Emulator, AKernelRunsOnThePresentDeviceAlone) {
  in_mode("devices:2", 3, [this] {
    const auto expect = [](bool holds) {
      if (!holds) std::exit(1);
    };
    int count = 0;
    expect(cudaGetDeviceCount(&count) == cudaSuccess && count == 2);
    float* const out = room(64);
    expect(cudaSetDevice(1) == cudaSuccess && cudaSetDevice(2) == cudaErrorInvalidDevice);
    expect(start(reverse_kernel, 1, 64, out) == cudaErrorInvalidResourceHandle);
    expect(cudaSetDevice(0) == cudaSuccess);
    expect(start(reverse_kernel, 1, 64, out) == cudaSuccess);
    cudaDeviceProp first{}, second{};
    expect(cudaGetDeviceProperties(&first, 0) == cudaSuccess);
    expect(cudaGetDeviceProperties(&second, 1) == cudaSuccess);
    expect(first.uuid.bytes[0] != second.uuid.bytes[0]);
  });
}

// The child opens the parent's memory; while it does, the parent may not free it.
TEST_F(Emulator, MemoryThatAnotherProcessHasOpenIsNotFreed) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 4096), cudaSuccess);
  cudaIpcMemHandle_t handle{};
  ASSERT_EQ(cudaIpcGetMemHandle(&handle, memory), cudaSuccess);
  int ready[2], go[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = fork();
  if (child == 0) {
    void* opened = nullptr;
    char byte = cudaIpcOpenMemHandle(&opened, handle, 0) == cudaSuccess ? 'y' : 'n';
    if (write(ready[1], &byte, 1) != 1 || ::read(go[0], &byte, 1) != 1) _exit(1);
    byte = cudaIpcCloseMemHandle(opened) == cudaSuccess ? 'y' : 'n';
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  EXPECT_DEATH(cudaFree(memory), "freed that another process has open");
  ASSERT_EQ(write(go[1], &byte, 1), 1);
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
}

}  // namespace
}  // namespace troupe_emulator::test
