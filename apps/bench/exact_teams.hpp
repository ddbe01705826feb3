// Where one side of `troupe bench exact` computes: on the CPU with a team of one thread and a team
// of two, on a GPU with one team in the place of both. Used on the caller's thread.
#pragma once

#include "kernels/panels.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"

#include <memory>
#include <string>

namespace troupe::bench {

// The values of --device and --dtype.
struct ExactPlace {
  std::string device = "cpu";
  kernels::PanelDtype dtype = kernels::PanelDtype::kF32;
};

class ExactTeams {
 public:
  // Also makes the calling thread flush denormals to zero. Errors: those of make_team.
  static core::Result<ExactTeams> open(const ExactPlace& place);

  core::TeamRunner& wide() { return *wide_; }  // of two threads
  core::TeamRunner& narrow() { return narrow_ ? *narrow_ : *wide_; }
  const std::string& isa() const { return isa_; }  // "avx2", ..., "cuda"

 private:
  std::unique_ptr<core::TeamRunner> wide_, narrow_;  // narrow_ is null on a GPU
  std::string isa_;
};

}  // namespace troupe::bench
