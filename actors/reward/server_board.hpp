// Decides which of several servers gets the next request, from how the earlier ones went. Pure: it
// is told the time. Owned by one HttpReward, on its strand.
//
// A request goes to the server with the fewest in flight, of those that are well. How many a server
// may have in flight, its window, begins at 1. The first answer shows how many it could give one
// after another within a third of the deadline; the window becomes that number, then grows by one
// with each answer that takes at most so long, so that a server that answers one by one is not
// given more than it can do in time. It shrinks when answers take more than half of the deadline.
//
// A server is away after a failure, and suspect when it was silent for half as long again as the
// slowest of the recent answers of all took. Any answer makes it well again. One that is not well
// gets no requests while others are well, but copies of some, one at a time and at growing pauses.
#pragma once

#include "runtime/core/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::actors::reward {

class ServerBoard {
 public:
  using Place = std::size_t;  // of a server in the list
  using Tried = std::vector<bool>;

  explicit ServerBoard(std::size_t servers) : servers_(servers) {}

  // The server for a request that begins now and was not sent to those `tried`; none without room.
  std::optional<Place> pick(const Tried& tried, core::TimePoint now) const;
  // Whether a well server that was not tried may have room later.
  bool may_have_room(const Tried& tried, core::TimePoint now) const;
  // When no server is well: one that was not tried and did not fail since `begun`, in which case
  // the request need not try it. It may be busy with its one request; then `busy` is set.
  std::optional<Place> last_resort(const Tried& tried,
                                   core::TimePoint begun,
                                   core::TimePoint now,
                                   bool& busy) const;
  // A server that is due for a copy of a request that goes to another one.
  std::optional<Place> probe(const Tried& tried, core::TimePoint now) const;

  void sent(Place place);
  // `sent`: when the request was.
  void answered(Place place, core::TimePoint sent, core::TimePoint now, core::Duration deadline);
  void failed(Place place, core::TimePoint now);
  // No answer within the deadline: a failure, unless the server has just answered others.
  void late(Place place, core::TimePoint sent, core::TimePoint now, core::Duration deadline);
  // Looks at the server of a request that has no answer yet. True when it is suspect: since the
  // request was sent, and since its last answer to any, it was silent for `patience`.
  bool suspect(Place place, core::TimePoint sent, core::TimePoint now, core::Duration deadline);
  // The server asked not to be called until then.
  void silence(Place place, core::TimePoint until) { servers_[place].silent_until = until; }
  bool silent(Place place, core::TimePoint now) const { return now < servers_[place].silent_until; }

  // How long a request may be silent before it is sent elsewhere, too.
  core::Duration patience(core::Duration deadline) const;

  std::size_t size() const noexcept { return servers_.size(); }
  std::size_t in_flight() const;
  std::size_t in_flight(Place place) const { return servers_[place].in_flight; }
  std::size_t window(Place place) const { return servers_[place].window; }
  std::uint64_t asked(Place place) const { return servers_[place].asked; }
  bool suspected(Place place) const { return servers_[place].suspect; }
  bool well(Place place) const { return !servers_[place].away && !servers_[place].suspect; }

 private:
  struct Server {
    std::size_t in_flight = 0, window = 1;
    bool measured = false;  // it has answered since its window was 1
    bool away = false, suspect = false;
    core::TimePoint heard{}, failed{}, retry{}, silent_until{};
    core::Duration pause{};  // before the next probe
    std::uint64_t asked = 0;
  };
  bool silent_too_long(const Server& server,
                       core::TimePoint sent,
                       core::TimePoint now,
                       core::Duration deadline) const;
  void rest(Server& server, core::TimePoint now);

  std::vector<Server> servers_;
  core::Duration slowest_{};  // of the recent answers; decays
};

}  // namespace troupe::actors::reward
