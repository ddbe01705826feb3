// Recorded graphs of the emulated device: done when they are launched, and what spoils a recording.
#include "tests/cuda_emulator/tests/fixture.hpp"

#include <functional>
#include <thread>

namespace troupe_emulator::test {
namespace {

TEST_F(Emulator, GraphsAreDoneWhenLaunchedNotWhenRecorded) {
  float* out = room(64);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  ASSERT_EQ(cudaMemsetAsync(out, 0, 256, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_EQ(start(reverse_kernel, 1, 64, out), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&ready, graph, 0), cudaSuccess);
  cudaGraphDestroy(graph);
  EXPECT_EQ(read(out, 64)[0], 0.0f);
  ASSERT_EQ(cudaGraphLaunch(ready, stream_), cudaSuccess);
  EXPECT_EQ(read(out, 64)[0], 63.0f);
  cudaGraphExecDestroy(ready);
  cudaFree(out);
}

TEST_F(Emulator, WhatMayNotBeCalledSpoilsTheRecording) {
  float* const out = room(64);
  void* memory = nullptr;
  std::size_t free = 0, total = 0;
  const std::function<cudaError_t()> calls[] = {
      [&] { return cudaMalloc(&memory, 64); }, [&] { return cudaFree(out); },
      [&] { return cudaMallocHost(&memory, 64); }, [&] { return cudaStreamSynchronize(stream_); },
      [&] { return cudaMemGetInfo(&free, &total); }};
  for (const auto& call : calls) {
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    ASSERT_EQ(start(reverse_kernel, 1, 64, out), cudaSuccess);
    EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
  }
  // Other threads may go on.
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  std::thread([&] {
    EXPECT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
  }).join();
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  cudaGraphDestroy(graph);
  cudaFree(out);
}

TEST_F(Emulator, AGraphThatCopiesFreedMemoryEndsTheProcess) {
  float *const from = room(8), *const to = room(8);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(to, from, 32, cudaMemcpyDeviceToDevice, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  cudaGraphExecDestroy(executable);
  ASSERT_EQ(cudaFree(from), cudaSuccess);
  EXPECT_DEATH(static_cast<void>(cudaGraphInstantiate(&executable, graph, 0)),
               "copies memory that was freed");
  cudaGraphDestroy(graph);
  cudaFree(to);
}

}  // namespace
}  // namespace troupe_emulator::test
