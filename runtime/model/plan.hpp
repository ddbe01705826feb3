// The plan of a forward pass: a batch of rows (tokens) that go through the model together. It has
// each row's token and position, where its keys and values are stored, and what it attends to. The
// engine builds one plan per step, the trainer one per micro-batch; the forward pass treats both
// alike. The builder owns the plan, reuses it without allocation, and writes it on the host; it is
// read-only while a forward pass runs. The forward pass reads `view`, which for a team on a device
// is the copy that `place` made.
#pragma once

#include "kernels/shapes.hpp"
#include "runtime/core/placed_lists.hpp"
#include "runtime/model/layer_windows.hpp"

#include <cstdint>
#include <vector>

namespace troupe::model {

// The lists of a plan as kernels read them, in the memory of the team that runs it.
struct PlanView {
  const std::int32_t* tokens = nullptr;
  const std::int32_t* positions = nullptr;
  const std::int32_t* slot_begin = nullptr;
  const std::int32_t* slots = nullptr;
  const kernels::Segment* segments = nullptr;
  const std::int32_t* block_table = nullptr;
  const std::int32_t* logit_rows = nullptr;
  const kernels::AttentionItem* items = nullptr;
};

struct ForwardPlan {
  std::vector<std::int32_t> tokens;     // [rows]
  std::vector<std::int32_t> positions;  // [rows]
  // KV slots that each row is written to, usually one. The rows of a shared prompt's last, partly
  // filled block also have one in each sample's own copy of that block.
  std::vector<std::int32_t> slot_begin;  // [rows + 1]
  std::vector<std::int32_t> slots;
  std::vector<kernels::Segment> segments;  // cover all rows, in order
  std::vector<std::int32_t> block_table;   // the KV blocks of each segment's sequence, in order
  // Segments [group_begin[g], group_begin[g+1]) share KV blocks only within group g. A group is the
  // unit of work of the attention's backward pass.
  std::vector<std::int32_t> group_begin;
  std::vector<std::int32_t> logit_rows;  // rows whose hidden state goes to the head
  // Filled by `finish`: attention items, divided among members by cost.
  std::vector<kernels::AttentionItem> items;
  std::vector<std::int32_t> item_begin;              // [members + 1]
  bool one_row_items = false, longer_items = false;  // whether there are any

  std::int64_t rows() const { return static_cast<std::int64_t>(tokens.size()); }
  void clear();
  // Cuts the segments into attention items and divides them among `members`. Call it once after
  // building. `shared`: query heads per kv head. If there are few items and some have a single row
  // (decoding a small batch), splits such items between these heads to balance the members.
  // `windows`: those of the layers that will run on the plan.
  void finish(std::int64_t kv_heads,
              int members,
              std::int64_t shared = 1,
              const LayerWindows& windows = {});
  // Copies the finished lists to `memory` if that is a device's; on the host they stay where they
  // are. Call it before a team with that memory runs the plan.
  void place(core::Memory& memory);
  // Whether a team with that memory can read `view`.
  bool placed_in(const core::Memory& memory) const;
  PlanView view() const;

 private:
  std::int64_t cost(const kernels::AttentionItem& item, std::int64_t shared) const;
  bool cut_between_heads(std::size_t at, std::int64_t shared, std::int64_t wanted);

  LayerWindows windows_;                 // argument of `finish`
  const core::Memory* place_ = nullptr;  // memory of `placed_`; null: the host
  PlanView placed_;
  core::PlacedLists lists_;
};

}  // namespace troupe::model
