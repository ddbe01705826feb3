// Where the tensors of a mixture-of-experts layer start in a flat buffer of ParamLayout, in
// elements; -1 when absent. In a whole model's buffer, the router and the shared expert's gate are
// adjacent and form one matrix [router_rows, hidden]. Gate and up of all experts are adjacent,
// expert by expert, and so are the down matrices: each of these two blocks has the layout of a
// fused tensor (FusedNames). A value type.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace troupe::model {

struct ExpertOffsets {
  std::int64_t gate = -1, up = -1, down = -1;
  bool any() const { return std::max({gate, up, down}) >= 0; }
};

struct MoeOffsets {
  std::int64_t router = -1;
  std::int64_t shared_gate = -1;
  std::vector<ExpertOffsets> experts;
  ExpertOffsets shared;
  bool any() const {
    return std::max(router, shared_gate) >= 0 || shared.any() ||
           std::any_of(experts.begin(), experts.end(), [](const auto& e) { return e.any(); });
  }
};

}  // namespace troupe::model
