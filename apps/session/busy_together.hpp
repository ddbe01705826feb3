// For how long at least one generator and the policy were busy at the same time: what asynchronous
// training is for. Fed with finished spans in pieces, role by role in order of time. Pure; spans
// must be of one clock, as those of one host are. Grows by one stretch for each pause of a role.
#pragma once

#include "runtime/wire/role_report.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::app {

class BusyTogether {
 public:
  void add(const std::string& role, const std::vector<wire::Span>& spans);
  double seconds() const;

 private:
  struct Stretch {
    std::uint64_t begin, end;
  };
  std::vector<Stretch> generators_, policy_;
};

}  // namespace troupe::app
