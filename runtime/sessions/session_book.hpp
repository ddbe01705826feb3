// The sessions of a server that anybody may open. When there are as many as there may be, the one
// that was used longest ago gives way if it has ended or was idle for `idle`. Else the owner with
// the most sessions gives way to one that has fewer: its youngest that was never called, or the one
// that it used longest ago. Else no further one is opened. So no owner can keep the others out. The
// tokens of all sessions are bounded likewise: beyond the bound the owner with the most gives way.
// On the HTTP server's strand. Bound: `sessions_max`, each with SessionBounds, and `tokens_max`.
#pragma once

#include "runtime/sessions/session_routes.hpp"

#include <map>

namespace troupe::sessions {

struct SessionBookOptions {
  std::size_t sessions_max = 1024;
  core::Duration idle = std::chrono::hours(1);
  SessionBounds bounds{};
  std::uint64_t tokens_max = std::uint64_t{1} << 27;  // of all sessions together
};

class SessionBook final : public SessionHost {
 public:
  // The sampler and the timers outlive the book.
  SessionBook(dialects::Sampler& sampler, async::Timers& timers, SessionBookOptions options)
      : sampler_(sampler), timers_(timers), options_(options) {}

  core::Result<OpenedSession> open(std::optional<std::size_t> owner, bool in_path) override;
  std::optional<OpenedSession> find(std::string_view id) override;
  void used(std::string_view id) override;

  std::size_t size() const noexcept { return sessions_.size(); }

 private:
  struct Line {
    OpenedSession opened;  // its sampler is owned elsewhere
    core::TimePoint used;
    std::uint64_t number = 0;  // in the order of their opening
  };
  using Lines = std::map<std::string, Line, std::less<>>;
  using Owner = std::optional<std::size_t>;

  bool make_room(Owner owner);
  void forget_tokens();
  Lines::iterator idle_one();
  // The owner whose sessions weigh most, and how much.
  template <class Weight>
  std::pair<Owner, std::uint64_t> heaviest(Weight weight) const;

  dialects::Sampler& sampler_;
  async::Timers& timers_;
  const SessionBookOptions options_;
  Lines sessions_;
  std::uint64_t opened_ = 0, uses_ = 0;
};

}  // namespace troupe::sessions
