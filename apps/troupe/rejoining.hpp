// What a command that stays with a run does when its place there is over: it joins again after a
// pause, or it ends. A guest belongs to one run: to that whose folder it was given, or the first
// that it has joined. Used on the main thread, which `next` blocks.
#pragma once

#include "apps/session/node/guest_flags.hpp"
#include "apps/session/node/node_process.hpp"
#include "apps/troupe/reentry_waits.hpp"

#include <optional>
#include <string>

namespace troupe::app {

class Rejoining {
 public:
  struct Terms {
    std::string who;            // "reward format", for people
    JoinFlags join;             // where the run is
    bool one_run = true;        // false: whichever run is there
    bool waits_first = false;   // for a company, before it has been in one
    double wait_s = 0;          // for a run that is away; 0: for ever
    std::string interrupted{};  // what a signal does, beside ending it
    std::string dismissed{};    // said when the run needs it no more
  };
  explicit Rejoining(Terms terms);

  // The way to the company as it is now. Errors: those of find_company; kPeerLost for a run that
  // has been there and whose folder says no address any more.
  core::Result<JoinTarget> find();
  // `self` as a member of the run that it belongs to.
  NodeSelf bound(NodeSelf self, const JoinTarget& target) const;
  // The company has admitted it.
  void joined(const NodeGuest& guest);
  // The run has taken what it brings: from now on it comes back when it was lost.
  void settled() { settled_ = true; }

  // Whether to wait for the run still; the time begins with the first such question after the run
  // was there.
  bool may_wait();
  std::string patience() const;  // ", for at most 60 s (--wait-s)", or ""

  // How the command ends; nothing: it joins again now.
  std::optional<core::Result<void>> next(const core::Result<NodeEnd>& end);

 private:
  std::optional<core::Error> final_answer(const core::Error& error);

  const Terms terms_;
  bool by_folder_ = false;
  bool found_ = false, settled_ = false;
  std::uint64_t run_id_ = 0;  // that it belongs to, once it has joined one
  std::string run_;
  ReentryWaits waits_;
  std::string last_;                            // the last cause that was said
  std::optional<core::TimePoint> away_since_;   // since when the run is waited for
  std::optional<core::TimePoint> taken_since_;  // since when the company refuses it
  const core::SteadyClock clock_{};
};

}  // namespace troupe::app
