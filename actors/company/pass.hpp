// A pass lets one node join, once: a secret and a number. The head counts the numbers upwards, so
// of two processes with one name the later always has the higher epoch, whatever their hosts'
// clocks say. Travels as one text, "NUMBER-SECRET". Plain functions.
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
