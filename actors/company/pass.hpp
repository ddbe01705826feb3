// Makes and reads passes. A pass lets one node join, once; its text is "NUMBER-SECRET". The head
// counts the numbers upwards, and the number is the node's epoch: of two processes with one name
// the later has the higher epoch, whatever their hosts' clocks say. Plain functions.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <string>

namespace troupe::actors {

// A new pass, with 256 random bits in hex.
std::string make_pass(std::uint64_t number);

// The number of a pass, the epoch of the node that brings it. Error: kInvalidArgument (not a pass).
core::Result<std::uint64_t> number_of_pass(const std::string& pass);

}  // namespace troupe::actors
