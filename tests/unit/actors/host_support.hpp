// Starting a role's host within a test.
#pragma once

#include "runtime/cluster/role_host.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace troupe::actors {

inline async::task<void> start_host(cluster::RoleHost* host, cluster::RoleHost::Factory factory) {
  auto started = co_await host->start(std::move(factory));
  EXPECT_TRUE(started.has_value());
}

}  // namespace troupe::actors
