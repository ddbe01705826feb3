// A policy of four ranks over several hosts, and the run in one process that it must equal.
#pragma once

#include "tests/integration/join_support.hpp"

namespace troupe::test {

class JoinGangs : public Joining {
 protected:
  void SetUp() override {
    if (!hosts_.why_not().empty()) GTEST_SKIP() << hosts_.why_not();
  }
  // One process, with as many lanes.
  void run_alone(const Words& more) {
    const Ended local =
        ends(files_.words("local") +
                 Words{"--cluster.transport", "loopback", "--train.lanes", "4"} + more,
             120);
    ASSERT_EQ(local.status, 0) << local.text;
  }
  // Two ranks at the head's host, two elsewhere.
  Background gang(const Words& more) {
    return head("run",
                Words{"--cluster.listen", TwoHosts::address_a() + ":0", "--actor.ranks", "4",
                      "--cluster.local_ranks", "2"} +
                    more,
                hosts_.a());
  }
  Background rank_node(const std::string& name, int host, const Words& more = {}) {
    return start(Words{"node", "--join", address_of("run"), "--token-file", token_of("run"),
                       "--roles", "policy", "--name", name} +
                     more,
                 name, host);
  }
  // TCP ports on which these processes and their children listen.
  static std::set<std::uint16_t> all_ports(std::initializer_list<const Background*> processes) {
    std::set<std::uint16_t> ports;
    for (const Background* const one : processes) {
      ports.merge(ports_of(one->pid()));
      for (const pid_t child : children_of(one->pid()))
        ports.merge(ports_of(child));
    }
    return ports;
  }

  TwoHosts hosts_;
};

}  // namespace troupe::test
