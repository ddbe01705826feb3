// Who may come in from another process, and under which names: nodes by a pass that is good once,
// roles of a node that is in by having been started there. Asked on the transport's threads, told
// on the company's strand; thread-safe. Bounds: kPasses_max passes that nobody used yet, and as many
// of nodes that have gone, with which a broken link is made again.
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
  // A new pass, whose number is one higher than that of the last. The oldest unused ones lapse beyond
  // the bound.
  std::string issue_pass();

  // A node's epoch is the number of its pass. Error: kInvalidArgument saying what is wrong with the
  // name, the pass, the epoch or the origin.
  core::Result<void> admit(const wire::Hello& hello, const std::string& origin);

  // A role that was started on that node may introduce itself, with this epoch.
  void expect(const std::string& node, const std::string& role, std::uint64_t epoch);
  // Any role of that kind ("reward" for "reward/...") of that node may: it brings its own.
  void allow_kind(const std::string& node, const std::string& kind);
  // The node is gone; its origin and its roles mean nothing any more.
  void forget(const std::string& node);

  // The node behind an origin; "" when none is.
  std::string node_of(const std::string& origin) const;

 private:
  struct Guest {
    std::string origin, pass;
    std::map<std::string, std::uint64_t> expected;  // epoch by role
    std::set<std::string> kinds;                    // of roles that it brings
  };
  struct Gone {
    std::string name, pass;
  };
  core::Result<void> admit_node(const wire::Hello& hello, const std::string& origin);
  core::Result<void> admit_role(const wire::Hello& hello, const std::string& origin);
  bool holds(const wire::Hello& hello) const;  // it is the guest of that name, with its pass

  mutable std::mutex mutex_;
  std::uint64_t last_number_ = 0;
  std::deque<std::string> passes_;
  std::map<std::string, Guest> guests_;  // by node name
  std::deque<Gone> gone_;
};

}  // namespace troupe::actors
