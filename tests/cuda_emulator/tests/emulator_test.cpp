// What the emulated device must notice, or tests on it would prove little: shown on kernels that
// are wrong on purpose. Compiled with the emulator itself (no kernels of ours).
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace {

class Emulator : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, 0), cudaSuccess); }
  void TearDown() override { cudaStreamDestroy(stream_); }

  template <class... Params, class... Args>
  cudaError_t start(void (*kernel)(Params...), unsigned blocks, unsigned threads, Args... args) {
    cudaLaunchConfig_t config{};
    config.gridDim = blocks;
    config.blockDim = threads;
    config.dynamicSmemBytes = 1024;
    config.stream = stream_;
    return cudaLaunchKernelEx(&config, kernel, args...);
  }
  float* room(std::size_t count) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, count * sizeof(float)), cudaSuccess);
    return static_cast<float*>(memory);
  }
  std::vector<float> read(const float* from, std::size_t count) {
    std::vector<float> out(count);
    EXPECT_EQ(
        cudaMemcpyAsync(out.data(), from, count * sizeof(float), cudaMemcpyDeviceToHost, stream_),
        cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    return out;
  }
  cudaStream_t stream_ = nullptr;
};

// Reverses a block's numbers through shared memory.
void reverse_kernel(float* out) {
  __shared__ float tile[64];
  tile[threadIdx.x] = static_cast<float>(blockIdx.x * 100 + threadIdx.x);
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}

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

TEST_F(Emulator, GraphsAreDoneWhenLaunchedNotWhenRecorded) {
  float* out = room(64);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  ASSERT_EQ(cudaMemsetAsync(out, 0, 256, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_EQ(start(reverse_kernel, 1, 64, out), cudaSuccess);
  EXPECT_NE(cudaStreamSynchronize(stream_), cudaSuccess);  // not while recording
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&ready, graph, 0), cudaSuccess);
  cudaGraphDestroy(graph);
  EXPECT_EQ(read(out, 64)[0], 0.0f);
  ASSERT_EQ(cudaGraphLaunch(ready, stream_), cudaSuccess);
  EXPECT_EQ(read(out, 64)[0], 63.0f);
  cudaGraphExecDestroy(ready);
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

}  // namespace
