// Runs this very program again with other arguments, for benchmarks that need a second process.
// The child shares standard error, answers on standard output, and dies with its parent. The call
// blocks the caller until the child is done. Bound: kOwnProcess_output_max bytes of output.
#pragma once

#include "runtime/core/result.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace troupe::app {

inline constexpr std::size_t kOwnProcess_output_max = 1 << 20;

// What the child wrote to standard output. `environment`: NAME=value pairs that replace or join the
// parent's. Errors: kResources (it cannot be started), kPeerLost (it ended by a signal or with a
// status other than 0; its own message is on standard error).
core::Result<std::string> run_own_process(const std::vector<std::string>& arguments,
                                          const std::vector<std::string>& environment = {});

}  // namespace troupe::app
