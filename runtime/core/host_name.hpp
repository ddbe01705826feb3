// The name of this machine, for people to read. Any thread.
#pragma once

#include <unistd.h>

#include <string>

namespace troupe::core {

// `unknown`: when the system does not say it.
inline std::string host_name(const char* unknown) {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != 0 ? name : unknown;
}

}  // namespace troupe::core
