// Picks the generator for a ticket: among those with room and with weights new enough for it, the
// one with the fewest samples outstanding. A ticket whose prompt has a key goes to the generator
// that had the key last, whose prefix cache may still hold the prompt, unless that one is more than
// `margin` samples above the least loaded. So does a call of an episode, by its session. A pure
// state machine: the same events give the same choices. Bounds: one Line per generator, one entry
// per key.
#pragma once

#include "actors/controller/ticket_queue.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace troupe::actors::controller {

class Router {
 public:
  Router(std::int64_t margin_samples, std::uint32_t groups_max)
      : margin_samples_(margin_samples), groups_max_(groups_max) {}

  // A generator is up. It gets no ticket until it holds weights; its load begins at zero.
  void up(const std::string& name);
  void down(const std::string& name);
  void holds(const std::string& name, core::Version version);
  // `blocked`: the generator refused work for now; false: it takes work again.
  void block(const std::string& name, bool blocked);
  // The generator gets no ticket any more, until it comes up again.
  void leave(const std::string& name);
  bool leaves(const std::string& name) const;

  // The generator for a ticket, none of `avoid`; nothing when none has room. `capacity`: groups of
  // this kind that one generator may have at a time.
  std::optional<std::string> pick(const TicketWork& work,
                                  std::uint32_t capacity,
                                  const std::set<std::string>& avoid = {}) const;
  void sent(const std::string& name, const TicketWork& work);
  void ended(const std::string& name, const TicketWork& work);

  std::size_t generators() const noexcept { return lines_.size(); }
  std::int64_t samples(const std::string& name) const;
  std::uint32_t groups(const std::string& name) const;
  // True when a generator outside `names` holds weights new enough for this ticket.
  bool others_for(const TicketWork& work, const std::set<std::string>& names) const;

 private:
  struct Line {  // a generator and its load
    std::optional<core::Version> holds;
    bool blocked = false;
    bool leaves = false;
    std::int64_t samples = 0;
    std::array<std::uint32_t, 2> groups{};           // by kind
    std::multiset<std::uint32_t> among{kAnyNumber};  // `among` of each group, and kAnyNumber
  };
  bool has_room(const Line& line, const TicketWork& work, std::uint32_t capacity) const;

  std::int64_t margin_samples_;
  std::uint32_t groups_max_;
  std::map<std::string, Line> lines_;
  std::map<std::uint64_t, std::string> last_;  // by key
};

}  // namespace troupe::actors::controller
