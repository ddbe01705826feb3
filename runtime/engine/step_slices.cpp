#include "runtime/engine/step_slices.hpp"

#include <algorithm>

namespace troupe::engine {

StepSlices::StepSlices(std::int32_t samples_max, std::int32_t rows_max) : rows_max_(rows_max) {
  slices_.reserve(static_cast<std::size_t>(samples_max));
  decode_.reserve(static_cast<std::size_t>(samples_max));
}

void StepSlices::begin(const ActiveGroups& active) {
  slices_.clear();
  rest_ = rows_max_;
  for (const auto& group : active)
    group->shared_planned = group->shared_computed;
}

void StepSlices::add_running(const ActiveGroups& active) {
  add_decoding(active);
  for (const auto& group : active) {
    const std::int32_t samples = group->forked ? group->request.samples : 1;
    for (std::int32_t i = 0; i < samples && !full(); ++i) {
      const SampleState& sample = group->at(i);
      if (sample.status != SampleStatus::kRunning || group->decodes(sample)) continue;
      add(*group, i);
    }
  }
}

void StepSlices::add_decoding(const ActiveGroups& active) {
  decode_.clear();
  for (const auto& group : active) {
    for (std::int32_t i = 0; i < group->request.samples; ++i) {
      if (group->decodes(group->at(i))) decode_.emplace_back(group.get(), i);
    }
  }
  const auto rows = std::min(static_cast<std::size_t>(rest_), decode_.size());
  if (rows == decode_.size()) decode_turn_ = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    const auto& [group, sample] = decode_[(decode_turn_ + i) % decode_.size()];
    add(*group, sample);
  }
  if (rows < decode_.size()) decode_turn_ = (decode_turn_ + rows) % decode_.size();
}

void StepSlices::add(Group& group, std::int32_t index) {
  const SampleState& sample = group.at(index);
  const std::int32_t first = group.next_position(sample);
  const std::int32_t length = group.length(sample);
  const std::int32_t count = std::min(rest_, length - first);
  const std::int32_t end = first + count;
  slices_.push_back({&group, index, first, count, end == length});
  group.shared_planned = std::max(group.shared_planned, std::min(end, group.shared_positions()));
  rest_ -= count;
}

}  // namespace troupe::engine
