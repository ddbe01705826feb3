// What lets a node in, once: a secret, and the number of this start. Numbers are counted by the
// head and grow, so of two processes of one name the later one always has the higher epoch, whatever
// their hosts' clocks say. Travels as one text, "NUMBER-SECRET". Plain functions.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <string>

namespace troupe::actors {

// A new one, with 256 random bits in hex.
std::string make_pass(std::uint64_t number);

// The number of a pass; whoever brings it starts with this epoch. Error: kInvalidArgument (no pass).
core::Result<std::uint64_t> number_of_pass(const std::string& pass);

}  // namespace troupe::actors
