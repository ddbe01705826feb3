// Decides which other processes may join the run's network, and under which names. A node needs a
// pass, which works once; a role needs to have been started on a node that has joined. Called on
// the transport's threads and the company's strand; thread-safe. Bounds: kPasses_max unused passes,
// and as many passes of nodes that left, which may reconnect with them after a broken link.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/wire/hello.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace troupe::actors {

class Admission {
 public:
  // A new pass, numbered one higher than the last. Beyond the bound the oldest unused pass expires.
  std::string issue_pass();

  // A node's epoch is the number of its pass. Error: kInvalidArgument saying what is wrong with the
  // name, the pass, the epoch or the origin.
  core::Result<void> admit(const wire::Hello& hello, const std::string& origin);

  // A role that was started on that node may introduce itself, with this epoch.
  void expect(const std::string& node, const std::string& role, std::uint64_t epoch);
  // That node may introduce any role of that kind ("reward" for "reward/..."): it brings its own.
  void allow_kind(const std::string& node, const std::string& kind);
  // The node is gone: neither its origin nor its roles are admitted any more.
  void forget(const std::string& node);

  // The node that connected from this origin; "" when there is none.
  std::string node_of(const std::string& origin) const;

 private:
  struct Guest {
    std::string origin, pass;
    std::map<std::string, std::uint64_t> expected;  // epoch by role
    std::set<std::string> kinds;                    // of roles that it may introduce
  };
  struct Gone {
    std::string name, pass;
  };
  core::Result<void> admit_node(const wire::Hello& hello, const std::string& origin);
  core::Result<void> admit_role(const wire::Hello& hello, const std::string& origin);
  bool holds(const wire::Hello& hello) const;  // a guest of that name has this pass

  mutable std::mutex mutex_;
  std::uint64_t last_number_ = 0;
  std::deque<std::string> passes_;
  std::map<std::string, Guest> guests_;  // by node name
  std::deque<Gone> gone_;
};

}  // namespace troupe::actors
