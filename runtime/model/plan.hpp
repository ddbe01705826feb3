// One batch of rows (tokens) that goes through the model together: which token stands in each row,
// at which position, where its keys and values are kept, and which rows attend to what. The engine
// builds one per step, the trainer one per micro-batch; the forward does not know the difference.
// Owned by its builder, reused without allocation; read-only while a forward runs. The builder
// writes on the host; the forward reads `view`, which for a team on a device is what `place` sent
// there.
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
  // KV slots that each row is written to: usually one; the rows of a shared prompt's last, partly
  // filled block have one in each sample's own copy of that block.
  std::vector<std::int32_t> slot_begin;  // [rows + 1]
  std::vector<std::int32_t> slots;
  std::vector<kernels::Segment> segments;  // cover the rows in order
  std::vector<std::int32_t> block_table;
  // Segments [group_begin[g], group_begin[g+1]) share KV blocks with nobody outside group g: the
  // unit of work of the attention's backward pass.
  std::vector<std::int32_t> group_begin;
  std::vector<std::int32_t> logit_rows;  // rows whose hidden state goes to the head
  // Filled by `finish`: items of the attention, shared out over members by cost.
  std::vector<kernels::AttentionItem> items;
  std::vector<std::int32_t> item_begin;  // [members + 1]

  std::int64_t rows() const { return static_cast<std::int64_t>(tokens.size()); }
  void clear();
  // Cuts the segments into attention items and shares them over `members`. Call once after
  // building. `shared`: heads of one kv head; where a few single rows (decoding a small batch) do
  // not share out evenly, one of them is cut between its heads. `windows`: of the layers that will
  // run on the plan.
  void finish(std::int64_t kv_heads,
              int members,
              std::int64_t shared = 1,
              const LayerWindows& windows = {});
  // Sends the finished lists to `memory`, where that is a device's; on the host they stay where
  // they are. Before a team with that memory runs the plan.
  void place(core::Memory& memory);
  // Whether a team with that memory can read `view`.
  bool placed_in(const core::Memory& memory) const;
  PlanView view() const;

 private:
  std::int64_t cost(const kernels::AttentionItem& item, std::int64_t shared) const;
  bool cut_between_heads(std::size_t at, std::int64_t shared, std::int64_t wanted);

  LayerWindows windows_;                 // of `finish`
  const core::Memory* place_ = nullptr;  // a device's, of `placed_`; null: the host's
  PlanView placed_;
  core::PlacedLists lists_;
};

}  // namespace troupe::model
