// A role for tests of those who start and stop roles: it answers everything with an error.
#pragma once

#include "runtime/cluster/role_host.hpp"

namespace troupe::actors::testing {

class IdleRole final : public cluster::Role {
 public:
  async::task<core::Result<wire::Frame>> handle(wire::Frame) override {
    co_return core::fail(core::ErrorCode::kUnsupported, "it only stands there");
  }
};

}  // namespace troupe::actors::testing
