// Words about rewards for the user: what a plain Python reward costs an update (that many groups,
// each a call of so many seconds, over its workers), which servers are away, what a set has. Pure.
#pragma once

#include "actors/protocol/messages_rewards.hpp"

#include <cstdint>
#include <string>

namespace troupe::session {

// From the amounts of a reward role ("workers" and so on; 0 without one).
struct CallCosts {
  double workers = 0, call_s = 0, timed_calls = 0;
  double together = 0;  // 1: an async function, whose calls do not wait for each other
};

// Seconds of an update of that many groups; 0 for other rewards, and until some calls were timed.
double seconds_an_update(const CallCosts& costs, std::uint64_t groups);
// "64 groups x 0.50 s a call / 2 workers = 16.0 s an update"; "" when it is not known.
std::string call_arithmetic(const CallCosts& costs, std::uint64_t groups);

// "2 of its 3 servers are away; the others answer for them"; "" when none is, or it has only one.
std::string servers_words(double servers, double away);

// "reward set 2 from update 5 on: score x 1 format x 0.5; formula score + format".
std::string set_words(const actors::SetRewards& set);

}  // namespace troupe::session
