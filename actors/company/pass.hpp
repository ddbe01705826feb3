// Makes and reads passes. A pass lets one node join, once; its text is "RUN-NUMBER-SECRET". The
// head counts the numbers upwards, and the number is the node's epoch: of two processes with one
// name the later has the higher epoch, whatever their hosts' clocks say. The run's id says to whom
// the way leads before a word is spoken with the company. Plain functions.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <string>

namespace troupe::actors::company {

struct PassFacts {
  core::RunId run;           // the company's
  std::uint64_t number = 0;  // the epoch of the node that brings the pass
};

// A new pass, with 256 random bits in hex.
std::string make_pass(const PassFacts& facts);

// Error: kInvalidArgument (not a pass).
core::Result<PassFacts> facts_of_pass(const std::string& pass);

}  // namespace troupe::actors::company
