#include "runtime/model/plan.hpp"

#include "runtime/core/check.hpp"

#include <algorithm>
#include <tuple>

namespace troupe::model {
namespace {

// Rows of one item: enough to reuse a block of keys well, few enough to balance between members.
constexpr std::int32_t kItemRows_max = 32;
// With fewer items per member than this, a single-row item that straddles two members' shares is
// split between heads.
constexpr std::size_t kItemsPerMember_min = 16;

std::int64_t heads_of(const kernels::AttentionItem& item, std::int64_t shared) {
  return (item.head_end > 0 ? item.head_end : shared) - item.head_begin;
}

}  // namespace

// Counts the key blocks that the rows of an item attend to, for each of its heads.
std::int64_t ForwardPlan::cost(const kernels::AttentionItem& item, std::int64_t shared) const {
  const kernels::Segment& segment = segments[static_cast<std::size_t>(item.segment)];
  std::int64_t blocks = 0;
  for (std::int32_t row = item.row_begin; row < item.row_end; ++row)
    blocks += windows_.blocks_of(segment.first_position + row + 1);
  return blocks * heads_of(item, shared);
}

// Splits a single-row item between its heads: items[at] keeps as many heads as come nearest to a
// cost of `wanted`, and a new item after it takes the rest. False if that would be all or none.
bool ForwardPlan::cut_between_heads(std::size_t at, std::int64_t shared, std::int64_t wanted) {
  const kernels::AttentionItem item = items[at];
  const std::int64_t heads = heads_of(item, shared), whole = cost(item, shared);
  const std::int64_t own = (wanted * heads + whole / 2) / whole;
  if (item.row_end - item.row_begin != 1 || own <= 0 || own >= heads) return false;
  kernels::AttentionItem front = item, back = item;
  front.head_end = back.head_begin = item.head_begin + static_cast<std::int32_t>(own);
  back.head_end = item.head_begin + static_cast<std::int32_t>(heads);
  items[at] = front;
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(at) + 1, back);
  return true;
}

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

void ForwardPlan::finish(std::int64_t kv_heads,
                         int members,
                         std::int64_t shared,
                         const LayerWindows& windows) {
  windows_ = windows;
  place_ = nullptr;
  items.clear();
  item_begin.clear();
  one_row_items = longer_items = false;
  std::int64_t total = 0;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const kernels::Segment& segment = segments[s];
    for (std::int32_t head = 0; head < kv_heads; ++head) {
      for (std::int32_t row = 0; row < segment.rows; row += kItemRows_max) {
        const std::int32_t end = std::min(row + kItemRows_max, segment.rows);
        items.push_back({static_cast<std::int32_t>(s), head, row, end, 0, 0});
        (end - row == 1 ? one_row_items : longer_items) = true;
        total += cost(items.back(), shared);
      }
    }
  }
  // The share of member m ends where the running cost is nearest to (m + 1) / members of the total.
  item_begin.push_back(0);
  std::int64_t done = 0;
  std::size_t next = 0;
  const bool few = items.size() < kItemsPerMember_min * static_cast<std::size_t>(members);
  for (int member = 0; member < members; ++member) {
    const std::int64_t target = total * (member + 1) / members;
    while (next < items.size()) {
      const std::int64_t whole = cost(items[next], shared);
      if (member + 1 < members && done + whole > target) {
        const bool cut = few && cut_between_heads(next, shared, target - done);
        if (!cut && done + whole / 2 >= target) break;
      }
      done += cost(items[next], shared);
      ++next;
    }
    item_begin.push_back(static_cast<std::int32_t>(next));
  }
}

void ForwardPlan::place(core::Memory& memory) {
  place_ = nullptr;
  if (memory.on_host()) return;
  PlanView& v = placed_;
  // The block table comes last. It grows with the context, and the other lists keep their addresses
  // when it needs more room.
  std::tie(v.tokens, v.positions, v.slot_begin, v.slots, v.segments, v.logit_rows, v.items,
           v.block_table) = lists_.place(memory, tokens, positions, slot_begin, slots, segments,
                                         logit_rows, items, block_table);
  place_ = &memory;
}

bool ForwardPlan::placed_in(const core::Memory& memory) const {
  return memory.on_host() ? place_ == nullptr : place_ == &memory;
}

PlanView ForwardPlan::view() const {
  if (place_ != nullptr) return placed_;
  return {tokens.data(),   positions.data(),   slot_begin.data(), slots.data(),
          segments.data(), block_table.data(), logit_rows.data(), items.data()};
}

}  // namespace troupe::model
