// The sessions of a run's episodes, by their ids: those that the environment role opens for its
// programs, and those that programs from outside open, each of which takes an episode that waits
// for one. Any thread. Bound: the episodes that are under way.
#pragma once

#include "actors/environment/episode_run.hpp"
#include "runtime/sessions/session_routes.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace troupe::actors::environment {

// What is known of an episode's session at some time.
struct VisitState {
  core::TimePoint opened{}, used{};
  bool ended = false;     // no calls follow
  bool rewarded = false;  // the whole, or one of its calls
  bool busy = false;      // a call is being answered
};

// When to look at a session again.
struct VisitEnd {
  bool over = false;
  core::TimePoint look{};  // if it is not over
};

// A session is over once it has ended and has its reward; when nothing was heard of it for
// reward_timeout; and after episode_timeout_s in any case.
VisitEnd visit_end(const VisitState& state, const EpisodeSettings& settings, core::TimePoint now);

class EpisodeSessions final : public sessions::SessionHost {
 public:
  // What answers the calls of an episode. Error kOverloaded: nothing does now.
  using MakeSampler =
      std::function<core::Result<std::shared_ptr<dialects::Sampler>>(const EpisodeOrder&)>;

  // `timers` outlives the object.
  EpisodeSessions(async::Timers& timers, sessions::SessionBounds bounds, MakeSampler make);

  // `changed` is called on any thread when a session was opened or something came of it. Null:
  // nothing listens any more; after that call returns, none is under way.
  void when_changed(std::function<void()> changed);

  // An episode and its session.
  class Visit;
  // Opens the session of an episode for a program of ours.
  core::Result<std::shared_ptr<Visit>> begin(const EpisodeOrder& order);
  // Has the episode wait for who opens a session.
  std::shared_ptr<Visit> offer(EpisodeOrder order);
  // The session; null until it is opened.
  std::shared_ptr<sessions::Session> session(const Visit& visit) const;
  std::string key(const Visit& visit) const;   // of its session
  VisitState state(const Visit& visit) const;  // of a visit with a session
  // Ends and forgets the episode's session, or its offer.
  void leave(const Visit& visit);

  // SessionHost: a session from outside, in the episode that has waited longest. Error kOverloaded:
  // none waits.
  core::Result<sessions::OpenedSession> open(std::optional<std::size_t> owner,
                                             bool in_path) override;
  std::optional<sessions::OpenedSession> find(std::string_view id) override;
  void used(std::string_view id) override;

 private:
  core::Result<void> furnish(Visit& visit, std::optional<std::size_t> owner, bool in_path);
  void touched(const std::string& id);

  async::Timers& timers_;
  const sessions::SessionBounds bounds_;
  const MakeSampler make_;
  mutable std::mutex mutex_;  // guards all below
  std::deque<std::shared_ptr<Visit>> waiting_;
  std::map<std::string, std::shared_ptr<Visit>, std::less<>> open_;  // by session id
  std::mutex listener_mutex_;  // guards `changed_`, also while it is called
  std::function<void()> changed_;
};

}  // namespace troupe::actors::environment
