// The name of a class of arithmetic. Roles whose classes have one name compute the same bits from
// the same weights, so their log-probs may be compared and a run may go on on another machine:
//
//   f32/v1/H, bf16/v1/H                     the same on processors and on all devices
//   bf16-compute/v1/abi11/sm_90/H           a device: its kernels' kAbi and compute capability
//   bf16-compute/v1/cpu/H                   a processor with the bf16 dot product
//
// H is the beginning of a SHA-256 of log-probs and entropies that two small models give on this
// team, made from numbers that are the same everywhere. It finds undeclared differences: a broken
// kernel, another libm, a compiler that contracts. docs/adr/0003 and 0007 say what belongs to a
// class.
#pragma once

#include "kernels/panels.hpp"
#include "runtime/core/team.hpp"

#include <string>

namespace troupe::model {

// Grows when the definition of a result changes on purpose (docs/adr/0003-exact-arithmetic.md).
inline constexpr int kArithmeticVersion = 1;

// `dtype`: any but kInt8, which no role is compared in. Computes in the team's memory, on its
// threads; takes some milliseconds. Errors: what the team's memory and kernels throw.
std::string arithmetic_name(core::TeamRunner& team, kernels::PanelDtype dtype);

}  // namespace troupe::model
