// Measures how long generators and the policy were busy at the same time, the aim of asynchronous
// training. Callers add finished spans (in nanoseconds) in batches, in order of time within each
// role. Pure; all spans must come from one clock (one host). Memory: one entry per busy stretch.
#pragma once

#include "runtime/wire/role_report.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::session {

class BusyTogether {
 public:
  void add(const std::string& role, const std::vector<wire::Span>& spans);
  double seconds() const;  // in which the policy and at least one generator were busy

 private:
  struct Stretch {
    std::uint64_t begin, end;
  };
  std::vector<Stretch> generators_, policy_;
};

}  // namespace troupe::session
