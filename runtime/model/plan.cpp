// Cutting the attention of a plan into items and sharing them over the team.
#include "runtime/model/plan.hpp"

#include "runtime/core/check.hpp"

#include <algorithm>

namespace troupe::model {
namespace {

// Rows of one item: enough to use a block of keys well, few enough to share out evenly.
constexpr std::int32_t kItemRows_max = 32;

// Keys that the rows of an item look at, rounded up to blocks of the softmax: its cost.
std::int64_t cost_of(const kernels::Segment& segment, std::int32_t begin, std::int32_t end) {
  std::int64_t keys = 0;
  for (std::int32_t row = begin; row < end; ++row) {
    const std::int64_t visible = segment.first_position + row + 1;
    keys += (visible + kernels::kAttentionBlock - 1) / kernels::kAttentionBlock;
  }
  return keys * kernels::kAttentionBlock;
}

}  // namespace

void ForwardPlan::clear() {
  tokens.clear();
  positions.clear();
  slot_begin.clear();
  slots.clear();
  segments.clear();
  block_table.clear();
  group_begin.clear();
  logit_rows.clear();
  items.clear();
  item_begin.clear();
}

void ForwardPlan::finish(std::int64_t kv_heads, int members) {
  items.clear();
  item_begin.clear();
  std::int64_t total = 0;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const kernels::Segment& segment = segments[s];
    for (std::int32_t head = 0; head < kv_heads; ++head) {
      for (std::int32_t row = 0; row < segment.rows; row += kItemRows_max) {
        const std::int32_t end = std::min(row + kItemRows_max, segment.rows);
        items.push_back({static_cast<std::int32_t>(s), head, row, end});
        total += cost_of(segment, row, end);
      }
    }
  }
  // Member m ends where the running cost comes nearest to (m + 1) / members of the total.
  item_begin.push_back(0);
  std::int64_t done = 0;
  std::size_t next = 0;
  for (int member = 0; member < members; ++member) {
    const std::int64_t target = total * (member + 1) / members;
    while (next < items.size()) {
      const auto& item = items[next];
      const std::int64_t cost =
          cost_of(segments[static_cast<std::size_t>(item.segment)], item.row_begin, item.row_end);
      if (member + 1 < members && done + cost / 2 >= target) break;
      done += cost;
      ++next;
    }
    item_begin.push_back(static_cast<std::int32_t>(next));
  }
}

}  // namespace troupe::model
