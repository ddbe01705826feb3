// Kernels on a stream of the emulated device, for its tests.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace troupe_emulator::test {

class Emulator : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, 0), cudaSuccess); }
  void TearDown() override { cudaStreamDestroy(stream_); }

  template <class... Params, class... Args>
  cudaError_t start(void (*kernel)(Params...), unsigned blocks, unsigned threads, Args... args) {
    return start_with(1024, kernel, blocks, threads, args...);
  }
  // With so many bytes of dynamic shared memory.
  template <class... Params, class... Args>
  cudaError_t start_with(std::size_t shared,
                         void (*kernel)(Params...),
                         unsigned blocks,
                         unsigned threads,
                         Args... args) {
    cudaLaunchConfig_t config{};
    config.gridDim = blocks;
    config.blockDim = threads;
    config.dynamicSmemBytes = shared;
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
inline void reverse_kernel(float* out) {
  __shared__ float tile[64];
  tile[threadIdx.x] = static_cast<float>(blockIdx.x * 100 + threadIdx.x);
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}

}  // namespace troupe_emulator::test
