// A batch of segments over paged keys and values for the attention tests: random rows, shuffled
// blocks, every slot that no row may see filled with NaN. With a window, table entries of blocks
// that lie wholly before it point nowhere, as if the blocks had been given back.
#pragma once

#include "tests/unit/kernels/support.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::kernels::test {

struct Shape {
  std::int64_t heads, kv_heads, head_dim;
};

// What a layer may ask of attention beside its shape.
struct Variant {
  std::int64_t window = 0;
  float softcap = 0;
};

struct AttentionCase {
  // Each sequence has `length` positions; the last `rows` of them are query rows of this batch.
  struct Sequence {
    std::int32_t length, rows;
  };

  AttentionCase(Shape s, const std::vector<Sequence>& sequences, std::uint32_t seed, Variant v = {})
      : shape(s),
        variant(v),
        rows(count_rows(sequences)),
        blocks(count_blocks(sequences) + 2),
        q(Guarded::random(rows * (s.heads * s.head_dim + 8), seed)),
        k_pool(blocks * block_floats(), kNan),
        v_pool(blocks * block_floats(), kNan),
        out(rows * ldo(), 3.0f),
        lse(rows * s.heads, 3.0f) {
    std::vector<std::int32_t> order(static_cast<std::size_t>(blocks));
    std::iota(order.begin(), order.end(), 0);
    std::mt19937 engine(seed + 1);
    std::shuffle(order.begin(), order.end(), engine);
    std::int32_t first_row = 0;
    std::size_t next = 0;
    for (const Sequence& sequence : sequences) {
      segments.push_back({first_row, sequence.rows, sequence.length - sequence.rows,
                          static_cast<std::int32_t>(table.size())});
      for (std::int32_t at = 0; at < sequence.length; at += kKvBlock)
        table.push_back(order[next++]);
      first_row += sequence.rows;
      fill(segments.back(), sequence.length, seed + 10 * static_cast<std::uint32_t>(first_row));
      give_back(segments.back());
    }
  }

  static std::int64_t count_rows(const std::vector<Sequence>& sequences) {
    std::int64_t total = 0;
    for (const Sequence& s : sequences)
      total += s.rows;
    return total;
  }
  static std::int64_t count_blocks(const std::vector<Sequence>& sequences) {
    std::int64_t total = 0;
    for (const Sequence& s : sequences)
      total += (s.length + kKvBlock - 1) / kKvBlock;
    return total;
  }
  std::int64_t block_floats() const { return shape.kv_heads * shape.head_dim * kKvBlock; }
  std::int64_t ldq() const { return shape.heads * shape.head_dim + 8; }
  std::int64_t ldo() const { return shape.heads * shape.head_dim + 4; }
  std::int64_t width() const { return shape.kv_heads * shape.head_dim; }

  std::int32_t slot(const Segment& segment, std::int64_t position) const {
    const auto at = static_cast<std::size_t>(segment.table + position / kKvBlock);
    return table[at] * static_cast<std::int32_t>(kKvBlock) +
           static_cast<std::int32_t>(position % kKvBlock);
  }

  void fill(const Segment& segment, std::int32_t length, std::uint32_t seed) {
    Guarded k = Guarded::random(length * width(), seed);
    Guarded v = Guarded::random(length * width(), seed + 1);
    std::vector<std::int32_t> slots, begin{0};
    for (std::int32_t i = 0; i < length; ++i) {
      slots.push_back(slot(segment, i));
      begin.push_back(i + 1);
    }
    reference().kv_write(write(k, v, k_pool, v_pool, begin, slots), {0, length});
  }

  // Slots before the window of the segment's first row hold NaN, blocks before it are gone.
  void give_back(const Segment& segment) {
    const std::int64_t seen = first_key(segment.first_position + 1, variant.window);
    for (std::int64_t position = 0; position < seen; ++position)
      for (std::int64_t head = 0; head < shape.kv_heads; ++head)
        for (std::int64_t d = 0; d < shape.head_dim; ++d) {
          k_pool[k_at(segment, position, head, d)] = kNan;
          v_pool[v_at(segment, position, head, d)] = kNan;
        }
    for (std::int64_t block = 0; block < seen / kKvBlock; ++block)
      table[static_cast<std::size_t>(segment.table + block)] = 1 << 28;
  }

  std::int64_t k_at(const Segment& s,
                    std::int64_t position,
                    std::int64_t head,
                    std::int64_t d) const {
    const std::int64_t at = slot(s, position);
    return ((at / kKvBlock * shape.kv_heads + head) * shape.head_dim + d) * kKvBlock +
           at % kKvBlock;
  }
  std::int64_t v_at(const Segment& s,
                    std::int64_t position,
                    std::int64_t head,
                    std::int64_t d) const {
    const std::int64_t at = slot(s, position);
    return ((at / kKvBlock * shape.kv_heads + head) * kKvBlock + at % kKvBlock) * shape.head_dim +
           d;
  }

  KvWrite write(Guarded& k,
                Guarded& v,
                Guarded& to_k,
                Guarded& to_v,
                const std::vector<std::int32_t>& begin,
                const std::vector<std::int32_t>& slots) const {
    return KvWrite{.kv_heads = shape.kv_heads,
                   .head_dim = shape.head_dim,
                   .k = k.data(),
                   .ldk = width(),
                   .v = v.data(),
                   .ldv = width(),
                   .k_pool = to_k.data(),
                   .v_pool = to_v.data(),
                   .slot_begin = begin.data(),
                   .slots = slots.data()};
  }

  Attention args() {
    return Attention{.heads = shape.heads,
                     .kv_heads = shape.kv_heads,
                     .head_dim = shape.head_dim,
                     .scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim)),
                     .window = variant.window,
                     .softcap = variant.softcap,
                     .q = q.data(),
                     .ldq = ldq(),
                     .k_pool = k_pool.data(),
                     .v_pool = v_pool.data(),
                     .segments = segments.data(),
                     .block_table = table.data(),
                     .out = out.data(),
                     .ldo = ldo(),
                     .lse = lse.data()};
  }

  // Every row of every segment and kv head, `rows_per_item` at a time.
  void run(const Ops& ops, std::int32_t rows_per_item = 1 << 30) {
    std::vector<AttentionItem> items;
    for (std::int32_t s = 0; s < static_cast<std::int32_t>(segments.size()); ++s)
      for (std::int32_t head = 0; head < shape.kv_heads; ++head) {
        const std::int32_t count = segments[static_cast<std::size_t>(s)].rows;
        for (std::int32_t row = 0; row < count;) {
          const std::int32_t end = rows_per_item < count - row ? row + rows_per_item : count;
          items.push_back({s, head, row, end});
          row = end;
        }
      }
    ops.attention(args(), items.data(), std::ssize(items));
  }

  Shape shape;
  Variant variant;
  std::int64_t rows, blocks;
  Guarded q, k_pool, v_pool, out, lse;
  std::vector<Segment> segments;
  std::vector<std::int32_t> table;
};

inline const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all{{2, 2, 20},  {3, 1, 32}, {9, 3, 64},
                                      {4, 1, 128}, {4, 2, 16}, {1, 1, 36}};
  return all;
}

// For tests that run over all variants too.
inline const std::vector<Shape>& small_shapes() {
  static const std::vector<Shape> all{{2, 2, 20}, {3, 1, 32}, {4, 2, 16}, {1, 1, 36}};
  return all;
}

// Windows that begin inside, at and after the edges of blocks of 16 and 64 keys, with and without
// a soft cap.
inline const std::vector<Variant>& variants() {
  static const std::vector<Variant> all{{0, 0.5f}, {0, 30.0f}, {1, 0},   {2, 2.0f},  {15, 0},
                                        {16, 0},   {17, 0.7f}, {63, 0},  {64, 5.0f}, {65, 0},
                                        {100, 0},  {128, 0},   {129, 0}, {1000, 0}};
  return all;
}

inline const std::vector<AttentionCase::Sequence>& sequences() {
  static const std::vector<AttentionCase::Sequence> all{{1, 1},   {5, 5},    {16, 1},  {17, 17},
                                                        {64, 64}, {65, 1},   {70, 20}, {130, 130},
                                                        {200, 3}, {193, 129}};
  return all;
}

}  // namespace troupe::kernels::test
