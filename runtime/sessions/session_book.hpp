// The sessions of a server that anybody may open. When there are as many as there may be, the one
// that was used longest ago gives way if it has ended or was idle for `idle`; else no further one
// is opened. On the HTTP server's strand. Bound: `sessions_max`, each with SessionBounds.
#pragma once

#include "runtime/sessions/session_routes.hpp"

#include <map>

namespace troupe::sessions {

struct SessionBookOptions {
  std::size_t sessions_max = 1024;
  core::Duration idle = std::chrono::hours(1);
  SessionBounds bounds;
};

class SessionBook final : public SessionHost {
 public:
  // The sampler and the timers outlive the book.
  SessionBook(dialects::Sampler& sampler, async::Timers& timers, SessionBookOptions options)
      : sampler_(sampler), timers_(timers), options_(options) {}

  core::Result<OpenedSession> open(std::optional<std::size_t> owner) override;
  std::optional<OpenedSession> find(std::string_view id) override;

  std::size_t size() const noexcept { return sessions_.size(); }

 private:
  struct Line {
    OpenedSession opened;  // its sampler is owned by nobody here
    core::TimePoint used;
  };
  bool make_room();

  dialects::Sampler& sampler_;
  async::Timers& timers_;
  const SessionBookOptions options_;
  std::map<std::string, Line, std::less<>> sessions_;
};

}  // namespace troupe::sessions
