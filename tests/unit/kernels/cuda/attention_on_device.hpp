// An attention case on the device: its numbers, the items into which its rows are cut, and what the
// device makes of them. Keys and values are there as f32 or as bfloat16.
#pragma once

#include "tests/unit/kernels/attention_case.hpp"
#include "tests/unit/kernels/cuda/fixture.hpp"

#include <algorithm>
#include <vector>

namespace troupe::kernels::cuda::test {

inline std::vector<float> copy(const kernels::test::Guarded& x) {
  return {x.data(), x.data() + x.size()};
}
inline std::vector<std::uint16_t> rounded_copy(const kernels::test::Guarded& x) {
  std::vector<std::uint16_t> out(static_cast<std::size_t>(x.size()));
  std::transform(x.data(), x.data() + x.size(), out.begin(), to_bf16);
  return out;
}

class OnTheDevice {
 public:
  explicit OnTheDevice(kernels::test::AttentionCase& c, KvDtype kv = KvDtype::kF32)
      : case_(c),
        kv_(kv),
        q_(copy(c.q)),
        k_pool_(copy(c.k_pool)),
        v_pool_(copy(c.v_pool)),
        out_(copy(c.out)),
        lse_(copy(c.lse)),
        k_rounded_(rounded_copy(c.k_pool)),
        v_rounded_(rounded_copy(c.v_pool)),
        segments_(c.segments),
        table_(c.table) {}

  // Every row, `rows` at a time, `heads` of those that share keys at a time (0: all).
  std::vector<AttentionItem> items(std::int32_t rows, std::int32_t heads) const {
    const auto shared = static_cast<std::int32_t>(case_.shape.heads / case_.shape.kv_heads);
    const std::int32_t step = heads > 0 ? heads : shared;
    std::vector<AttentionItem> out;
    for (std::int32_t s = 0; s < std::ssize(case_.segments); ++s)
      for (std::int32_t kv = 0; kv < case_.shape.kv_heads; ++kv)
        for (std::int32_t row = 0; row < case_.segments[static_cast<std::size_t>(s)].rows;
             row += rows)
          for (std::int32_t head = 0; head < shared; head += step)
            out.push_back({s, kv, row,
                           std::min(row + rows, case_.segments[static_cast<std::size_t>(s)].rows),
                           head, heads > 0 ? std::min(head + step, shared) : 0});
    return out;
  }
  Attention args(bool with_lse = true) {
    Attention a = case_.args();
    a.q = q_.data(), a.out = out_.data();
    a.k_pool = k_pool_.data(), a.v_pool = v_pool_.data();
    if (kv_ == KvDtype::kBf16)
      a.k_pool = {k_rounded_.data(), kv_}, a.v_pool = {v_rounded_.data(), kv_};
    a.lse = with_lse ? lse_.data() : nullptr;
    a.segments = segments_.data(), a.block_table = table_.data();
    return a;
  }
  void run(const std::vector<AttentionItem>& which, bool with_lse = true) {
    Array<AttentionItem> list(which);
    Attention a = args(with_lse);
    a.one_row_items = a.longer_items = false;
    for (const AttentionItem& item : which)
      (item.row_end - item.row_begin == 1 ? a.one_row_items : a.longer_items) = true;
    device()->ops().attention(a, list.data(), std::ssize(which));
    device()->synchronize();  // before the list goes
  }
  ::testing::AssertionResult out_is(const kernels::test::Guarded& expected) {
    return same(out_, copy(expected));
  }
  ::testing::AssertionResult lse_is(const kernels::test::Guarded& expected) {
    return same(lse_, copy(expected));
  }
  std::vector<float> out() const { return out_.read(); }
  std::vector<float> lse() const { return lse_.read(); }

 private:
  kernels::test::AttentionCase& case_;
  const KvDtype kv_;
  Array<float> q_, k_pool_, v_pool_, out_, lse_;
  Array<std::uint16_t> k_rounded_, v_rounded_;
  Array<Segment> segments_;
  Array<std::int32_t> table_;
};

}  // namespace troupe::kernels::cuda::test
