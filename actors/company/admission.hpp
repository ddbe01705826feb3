// Decides which other processes may join the run's network, and under which names. A node needs a
// pass, which works once; a role must have been started on a node that has joined, or be of a kind
// that the node may bring. Called on the transport's threads and the company's strand; thread-safe.
// Bounds: kPasses_max unused passes, and as many passes of nodes that left, with which they may
// reconnect after a broken link.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"
#include "runtime/wire/hello.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace troupe::actors::company {

class Admission {
 public:
  // Passes are of that run and numbered from `first` + 1 on.
  explicit Admission(core::RunId run = {}, std::uint64_t first = 0)
      : run_(run), last_number_(first) {}

  core::RunId run() const noexcept { return run_; }

  // A new pass, numbered one higher than the last. Beyond the bound the oldest unused pass expires.
  std::string issue_pass();

  // Admits a node or a role. A node's epoch must be the number of its pass. `origin` names the
  // process that it connects from. Error: kInvalidArgument saying what is wrong with the name, the
  // pass, the epoch or the origin.
  core::Result<void> admit(const wire::Hello& hello, const std::string& origin);

  // From now on this role of that node, which was started there, is admitted with this epoch.
  void expect(const std::string& node, const std::string& role, std::uint64_t epoch);
  // From now on any role of that kind ("reward" for "reward/...") of that node is admitted.
  void allow_kind(const std::string& node, const std::string& kind);
  // The node is gone: neither its origin nor its roles are admitted any more.
  void forget(const std::string& node);

  // The pass with which the node came in; "" when it is not there.
  std::string pass_of(const std::string& node) const;
  // The node that connected from this origin; "" when there is none.
  std::string node_of(const std::string& origin) const;

 private:
  struct Guest {  // a node that was admitted
    std::string origin, pass;
    std::map<std::string, std::uint64_t> expected;  // epoch by role
    std::set<std::string> kinds;                    // of roles that it may introduce
  };
  struct Gone {  // a node that left
    std::string name, pass;
  };
  core::Result<void> admit_node(const wire::Hello& hello, const std::string& origin);
  core::Result<void> admit_role(const wire::Hello& hello, const std::string& origin);
  bool holds(const wire::Hello& hello) const;  // true when a guest of that name has this pass

  const core::RunId run_;
  mutable std::mutex mutex_;
  std::uint64_t last_number_;
  std::deque<std::string> passes_;
  std::map<std::string, Guest> guests_;  // by node name
  std::deque<Gone> gone_;
};

}  // namespace troupe::actors::company
