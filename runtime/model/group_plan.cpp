#include "runtime/model/group_plan.hpp"

#include "runtime/model/plan_builder.hpp"

namespace troupe::model {

std::int64_t own_rows(std::span<const std::int32_t> response, GroupRows rows) {
  if (rows == GroupRows::kLast) return std::ssize(response);
  return response.empty() ? 0 : std::ssize(response) - 1;
}

std::int64_t rows_of(const SampleGroup& group, GroupRows rows) {
  std::int64_t count = std::ssize(group.prompt);
  for (const auto response : group.responses)
    count += own_rows(response, rows);
  return count;
}

core::Result<void> build_group_plan(std::span<const SampleGroup> groups,
                                    const ModelSpec& spec,
                                    int members,
                                    GroupPlan& out,
                                    GroupRows rows) {
  PlanBuilder builder(out, rows);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    TROUPE_TRY(builder.check(groups[i], spec, "group " + std::to_string(i)));
    builder.add(groups[i]);
  }
  builder.finish(spec, members);
  return {};
}

}  // namespace troupe::model
