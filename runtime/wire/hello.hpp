// The `hello` frame: sent to another process with a role's address, it says which role the address
// belongs to. Plain values.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"
#include "runtime/wire/frame.hpp"

#include <cstdint>
#include <string>

namespace troupe::wire {

struct Hello {
  std::string name;          // "node/gpu1", "generator/0"
  core::RunId run;           // 0 for nodes and their company
  std::uint64_t epoch = 0;   // counts the starts of that role
  std::string pass;          // lets a node in; empty for roles of an admitted node
  std::string arithmetic{};  // the class that the role computes in; empty: no matter
};

Frame hello_frame(const Hello& hello);
// Errors: kData (malformed, or another body), kUnsupported (protocol version).
core::Result<Hello> read_hello(const Frame& frame);

}  // namespace troupe::wire
