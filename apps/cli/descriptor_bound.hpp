// How many files and connections this process may have open.
#pragma once

#include <sys/resource.h>

namespace troupe::app {

// Raises the soft limit of open files, often 1024, to the hard limit: each connection takes one or
// more.
inline void raise_descriptor_bound() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace troupe::app
