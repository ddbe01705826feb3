// What tests of a company over CAF share: a launcher without processes, and what happened, in
// order.
#pragma once

#include "actors/company/company.hpp"
#include "tests/unit/runtime/cluster/caf/support.hpp"

#include <string>
#include <vector>

namespace troupe::actors::testing {

class NoProcesses final : public company::NodeLauncher {
 public:
  core::Result<void> start(const std::string&,
                           const std::vector<std::string>&,
                           const std::string&) override {
    return {};
  }
  void kill(const std::string&) override {}
  std::vector<Exit> exits() override { return {}; }
};

using cluster::testing::Events;

}  // namespace troupe::actors::testing
