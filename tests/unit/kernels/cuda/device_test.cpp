// The device itself: threads that share kernels, copies of all sizes, and what may not happen while
// a graph is recorded.
#include "kernels/cuda/device_team.hpp"
#include "tests/unit/kernels/cuda/fixture.hpp"

#include <atomic>
#include <numeric>
#include <thread>

namespace troupe::kernels::cuda::test {
namespace {

class CudaDevice : public OnDevice {};

std::vector<char> bytes_of(std::size_t count, unsigned seed) {
  std::vector<char> bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<char>((i * 2654435761u + seed) >> 13);
  return bytes;
}

// A product of few rows, on the host.
struct HostProduct {
  static constexpr std::int64_t kRows = 32, kDepth = 16;
  std::int64_t columns;
  std::vector<float> a, panels, c;

  explicit HostProduct(std::int64_t n)
      : columns(n),
        a(normal(kRows * kDepth, 1)),
        panels(static_cast<std::size_t>(packed_bytes(PanelDtype::kF32, n, kDepth)) / 4),
        c(static_cast<std::size_t>(kRows * n)) {
    const auto b = normal(n * kDepth, 2);
    reference().pack_transposed(
        {.from = b.data(), .ldf = kDepth, .n = columns, .k = kDepth, .to = panels.data()},
        {0, panels_of(columns)});
    reference().gemm(at(a.data(), panels.data(), c.data()), {0, kRows}, {0, panels_of(columns)});
  }
  Gemm at(const float* x, const float* w, float* to) const {
    return {.m = kRows,
            .n = columns,
            .k = kDepth,
            .a = x,
            .lda = kDepth,
            .b = w,
            .c = to,
            .ldc = columns};
  }
};

// Asks one kernel for different amounts of shared memory from several threads at once: how much a
// kernel may have is state of the process.
TEST_F(CudaDevice, ThreadsAskTheSameKernelsForDifferentAmounts) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  // Blocks of one panel, and of two where there are enough.
  for (const std::int64_t columns : {40, 3200, 24, 3184}) {
    threads.emplace_back([columns, &wrong] {
      flush_denormals();
      const HostProduct product(columns);
      auto opened = open_device(0);
      if (!opened) return void(++wrong);
      Device& own = **opened;
      own.enter();
      core::Memory& memory = own.memory();
      const auto put = [&memory](const std::vector<float>& values) {
        auto* const to = static_cast<float*>(memory.allocate(values.size() * sizeof(float)));
        memory.upload(to, values.data(), values.size() * sizeof(float));
        return to;
      };
      float* const all[] = {put(product.a), put(product.panels), put(product.c)};
      std::vector<float> got(product.c.size());
      for (int round = 0; round < 5; ++round) {
        try {
          for (int launch = 0; launch < (columns > 1000 ? 6 : 200); ++launch)
            own.ops().gemm(product.at(all[0], all[1], all[2]), {0, HostProduct::kRows},
                           {0, panels_of(product.columns)});
          memory.download(got.data(), all[2], got.size() * sizeof(float));
        } catch (const std::exception&) {
          ++wrong;
        }
        wrong += got == product.c ? 0 : 1;
      }
      for (float* const one : all)
        memory.release(one, 0);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

// Below, at and above what goes through pinned memory at a time, one behind the other.
TEST_F(CudaDevice, CopiesOfAnySizeArriveWhole) {
  core::Memory& memory = device()->memory();
  constexpr std::size_t kMost = (13 << 20) + 5;
  char* const there = static_cast<char*>(memory.allocate(kMost));
  std::vector<char> got(kMost);
  for (const std::size_t size : {std::size_t{1}, std::size_t{300}, std::size_t{4} << 20,
                                 (std::size_t{4} << 20) + 1, std::size_t{8} << 20, kMost}) {
    auto sent = bytes_of(size, static_cast<unsigned>(size));
    memory.upload(there, sent.data(), size);
    const std::vector<char> expected = sent;
    std::fill(sent.begin(), sent.end(), 'x');  // it may change as soon as the call returns
    memory.upload(there + size - 1, &expected.back(), 1);
    memory.download(got.data(), there, size);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), got.begin())) << size;
  }
  memory.release(there, kMost);
}

// The driver would break the recording off.
TEST_F(CudaDevice, NothingIsTakenOrCopiedWhileAGraphIsRecorded) {
  core::Memory& memory = device()->memory();
  void* const before = memory.allocate(4096);
  void* const other = memory.allocate(4096);
  void* const late = memory.allocate(4096);
  char byte = 1;
  device()->begin_recording();
  EXPECT_THROW(memory.allocate(64), core::DeviceError);
  EXPECT_THROW(memory.upload(before, &byte, 1), core::DeviceError);
  EXPECT_THROW(memory.download(&byte, before, 1), core::DeviceError);
  memory.copy(before, other, 4096);
  memory.release(late, 4096);  // at the end
  const auto graph = device()->end_recording();
  graph->launch();
  memory.upload(before, &byte, 1);
  memory.download(&byte, before, 1);
  EXPECT_EQ(byte, 1);
  memory.release(before, 4096);
  memory.release(other, 4096);
}

}  // namespace
}  // namespace troupe::kernels::cuda::test
