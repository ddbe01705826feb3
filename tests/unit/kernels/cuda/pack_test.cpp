// Packing: the bytes of the reference for every dtype, tail and range of panels.
#include "tests/unit/kernels/cuda/fixture.hpp"

#include <cstring>

namespace troupe::kernels::cuda::test {
namespace {

class CudaPack : public OnDevice {};

TEST_F(CudaPack, TransposedHasTheBytesOfTheReference) {
  for (const PanelDtype dtype :
       {PanelDtype::kF32, PanelDtype::kBf16, PanelDtype::kInt8, PanelDtype::kBf16Compute})
    for (const std::int64_t n : {1, 16, 37})
      for (const std::int64_t k : {1, 2, 6, 127, 129, 700}) {
        const std::int64_t ldw = k + 3, panels = panels_of(n);
        Array<float> w(normal(n * ldw, 5));
        w.host()[0] = 1.0f + 0x1p-8f;  // a tie
        if (k > 100) {                 // columns that are too small, too large, or no numbers
          w.host()[static_cast<std::size_t>(k - 1)] = kNan;
          for (std::int64_t i = 0; i < k && n > 2; ++i)
            w.host()[static_cast<std::size_t>(2 * ldw + i)] = 1e-39f * static_cast<float>(i % 3);
          if (n > 5) w.host()[static_cast<std::size_t>(5 * ldw + 70)] = -kInf;
          if (n > 6) w.host()[static_cast<std::size_t>(6 * ldw + 71)] = 3.4e38f;
        }
        Array<float> in(w.host());
        Array<std::uint32_t> room(static_cast<std::size_t>(packed_bytes(dtype, n, k) / 4), 0x55);
        Array<float> scales(static_cast<std::size_t>(panels * kPanel), 3.0f);
        for (const auto& [begin, end] : {std::pair{panels > 1 ? 1 : 0, panels}, {0L, 1L}}) {
          reference().pack_transposed({.from = in.host().data(),
                                       .ldf = ldw,
                                       .n = n,
                                       .k = k,
                                       .to = {room.host().data(), dtype, scales.host().data()}},
                                      {begin, end});
          ops().pack_transposed({.from = in.data(),
                                 .ldf = ldw,
                                 .n = n,
                                 .k = k,
                                 .to = {room.data(), dtype, scales.data()}},
                                {begin, end});
          EXPECT_EQ(room.read(), room.host()) << name_of(dtype) << " " << n << " " << k;
          EXPECT_TRUE(same(scales, scales.host())) << name_of(dtype) << " " << n << " " << k;
        }
      }
}

TEST_F(CudaPack, PlainHasTheBytesOfTheReference) {
  for (const std::int64_t n : {1, 16, 37, 300})
    for (const std::int64_t k : {1, 5, 130}) {
      Array<float> x(normal(k * (n + 2), 6)),
          panels(static_cast<std::size_t>(packed_size(n, k)), 4.0f);
      const std::int64_t first = n > 16 ? 1 : 0;
      reference().pack_plain(
          {.from = x.host().data(), .ldf = n + 2, .n = n, .k = k, .to = panels.host().data()},
          {first, panels_of(n)});
      ops().pack_plain({.from = x.data(), .ldf = n + 2, .n = n, .k = k, .to = panels.data()},
                       {first, panels_of(n)});
      EXPECT_TRUE(same(panels, panels.host())) << n << " " << k;
    }
}

}  // namespace
}  // namespace troupe::kernels::cuda::test
