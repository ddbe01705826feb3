// The row of a sample: its ids as a forward pass takes them, contexts and drawn tokens in order.
// Each place that builds rows of samples does it with this. Pure functions.
#pragma once

#include "runtime/experience/group.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::experience {

// The ids after the group's prompt. The row is complete by itself, also of a fork.
struct Row {
  std::vector<std::int32_t> ids;     // the last one is drawn
  std::vector<std::uint32_t> drawn;  // index in `ids` of each of the sample's tokens
};

Row row_of(const Trajectory& sample);

// Whether the row has other ids than the sample's tokens.
bool has_context(const Trajectory& sample);

// The number of ids of the row, and how many of them are contexts.
std::size_t row_length(const Trajectory& sample);
std::size_t context_length(const Trajectory& sample);

// Upper bound of the bytes that the sample's turns take in a message: besides core::group_bytes.
std::uint64_t turn_bytes(const Trajectory& sample);

}  // namespace troupe::experience
