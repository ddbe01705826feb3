// The sessions of a server that a run learns from: each takes an episode of the run while one
// waits, and its opening then shows the episode's task; else it is a session as any other, which
// nothing is learned from. On the HTTP server's strand.
#pragma once

#include "actors/environment/episode_sessions.hpp"
#include "runtime/sessions/session_book.hpp"

#include <optional>
#include <string_view>

namespace troupe::serving {

class LearningSessions final : public sessions::SessionHost {
 public:
  // Both outlive the object.
  LearningSessions(actors::environment::EpisodeSessions& episodes, sessions::SessionBook& others)
      : episodes_(episodes), others_(others) {}

  core::Result<sessions::OpenedSession> open(std::optional<std::size_t> owner,
                                             bool in_path) override {
    auto opened = episodes_.open(owner, in_path);
    const bool none = !opened && opened.error().code == core::ErrorCode::kOverloaded;
    return none ? others_.open(owner, in_path) : std::move(opened);
  }
  std::optional<sessions::OpenedSession> find(std::string_view id) override {
    auto found = episodes_.find(id);
    return found ? std::move(found) : others_.find(id);
  }
  void used(std::string_view id) override {
    episodes_.used(id);
    others_.used(id);
  }

 private:
  actors::environment::EpisodeSessions& episodes_;
  sessions::SessionBook& others_;
};

}  // namespace troupe::serving
