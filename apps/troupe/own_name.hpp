// The name under which a command joins a run, as its flag --name gives it. It is checked before a
// file or a connection is made with it.
#pragma once

#include "runtime/core/plain_name.hpp"
#include "runtime/core/result.hpp"
#include "runtime/observe/terminal_text.hpp"

#include <string>

namespace troupe::app {

// Error kConfig, with the rule.
inline core::Result<void> check_own_name(const std::string& name) {
  if (core::is_plain_name(name)) return {};
  return core::fail(core::ErrorCode::kConfig, "--name '" + observe::terminal_line(name, 80) +
                                                  "': a name " + core::kPlainNameRule);
}

}  // namespace troupe::app
