// A group travels in one frame (core/group_bytes.hpp). One that is too long for it is cut: its
// longest samples are left out until the rest fits. Pure functions.
#pragma once

#include "actors/protocol/messages.hpp"

#include <cstdint>
#include <vector>

namespace troupe::actors {

// For each sample whether it stays, when together they may have `bytes_max`. The longest go first,
// of equals the later.
std::vector<bool> that_fit(const std::vector<std::uint64_t>& bytes, std::uint64_t bytes_max);

// Leaves out what does not fit and counts it in `dropped`. With fewer than two left of several, all
// go: such a group teaches nothing.
void fit_frame(PutGroup& group);

}  // namespace troupe::actors
