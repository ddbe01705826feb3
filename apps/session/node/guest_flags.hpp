// The flags with which a guest of a run says how it takes it when that run is gone. A guest belongs
// to one run: to that whose folder it was given, or the first that it has joined.
#pragma once

#include "apps/cli/flags.hpp"

#include <vector>

namespace troupe::session {

// How long a command waits for a run that is away.
inline cli::Flag wait_flag(double& wait_s) {
  constexpr double kYear_s = 31'536'000;
  return {"--wait-s", &wait_s, "seconds to wait for an absent run before it ends; 0: for ever",
          false,      0,       kYear_s};
}

struct GuestFlags {
  bool any_run = false;
  double wait_s = 3600;

  void add_to(std::vector<cli::Flag>& flags) {
    flags.push_back({"--any-run", &any_run,
                     "of --join: follow whichever run is there, not only the first that it joins"});
    flags.push_back(wait_flag(wait_s));
  }
};

}  // namespace troupe::session
