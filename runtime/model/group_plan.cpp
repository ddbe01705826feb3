#include "runtime/model/group_plan.hpp"

#include "runtime/model/plan_builder.hpp"

namespace troupe::model {
namespace {

using core::Result;

// Rows of a sample's own segment.
std::int64_t own_rows(std::span<const std::int32_t> response) {
  return response.empty() ? 0 : std::ssize(response) - 1;
}

}  // namespace

std::int64_t rows_of(const SampleGroup& group) {
  std::int64_t rows = std::ssize(group.prompt);
  for (const auto response : group.responses)
    rows += own_rows(response);
  return rows;
}

Result<void> build_group_plan(std::span<const SampleGroup> groups,
                              const ModelSpec& spec,
                              int members,
                              GroupPlan& out) {
  return build_plan(groups, GroupRows::kPredicting, spec, members, out);
}

}  // namespace troupe::model
