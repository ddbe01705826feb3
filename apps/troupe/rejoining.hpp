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
    session::JoinFlags join;    // where the run is
    bool one_run = true;        // false: whichever run is there
    bool waits_first = false;   // wait for a company even before the first join
    double wait_s = 0;          // wait for an absent run; 0: for ever
    std::string interrupted{};  // what a signal does, besides ending it
    std::string dismissed{};    // message when the run no longer needs it
  };
  explicit Rejoining(Terms terms);

  // The way to the company as it is now. Errors: those of find_company; kPeerLost for a run that
  // has been there and whose folder says no address any more.
  Result<session::JoinTarget> find();
  // `self` as a member of the run that it belongs to.
  session::NodeSelf bound(session::NodeSelf self, const session::JoinTarget& target) const;
  // The company has admitted it.
  void joined(const session::NodeGuest& guest);
  // The run has accepted its role: from now on it joins again after a loss.
  void settled() { settled_ = true; }

  // Whether to wait for the run still; the time begins with the first such question after the run
  // was there.
  bool may_wait();
  std::string patience() const;  // ", for at most 60 s (--wait-s)", or ""

  // How the command ends; nothing: it joins again now.
  std::optional<Result<void>> next(const Result<session::NodeEnd>& end);

 private:
  std::optional<core::Error> final_answer(const core::Error& error);

  const Terms terms_;
  bool by_folder_ = false;
  bool found_ = false, settled_ = false;
  std::uint64_t run_id_ = 0;  // the run that it has joined; 0: none yet
  std::string run_;
  ReentryWaits waits_;
  std::string last_;                            // the last cause that was printed
  std::optional<core::TimePoint> away_since_;   // since when the run is waited for
  std::optional<core::TimePoint> taken_since_;  // since when the company refuses it
  const core::SteadyClock clock_{};
};

}  // namespace troupe::app
