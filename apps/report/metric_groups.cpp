#include "apps/report/metric_groups.hpp"

namespace troupe::report {
namespace {

struct GroupRow {
  std::string_view begin;  // of a metric's name; the first row that fits counts
  std::size_t group;
};

constexpr GroupRow kGroupRows[] = {
    {"eval/", 2},         {"time/eval", 2},     {"alarm/reward_up_truth_down", 2},
    {"train/", 3},        {"rewards/", 3},      {"logps/", 3},
    {"kl/z", 3},          {"policy/nll", 3},    {"reward/", 0},
    {"response/", 0},     {"value/", 0},        {"time/", 0},
    {"perf/", 0},         {"async/version", 0}, {"async/staleness", 0},
    {"async/crossed", 0}, {"async/queue", 0},   {"async/generators", 0},
    {"policy/", 1},       {"kl/", 1},           {"async/", 1},
    {"alarm/", 1},
};

}  // namespace

std::size_t group_of_metric(std::string_view name) {
  for (const GroupRow& row : kGroupRows) {
    if (name.starts_with(row.begin)) return row.group;
  }
  return kMetricGroups.size() - 1;
}

}  // namespace troupe::report
