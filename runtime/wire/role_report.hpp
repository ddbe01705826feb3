// What a role's host knows about its role, and the frames that ask and answer it. A host answers
// whatever the role is doing. Plain values; no schema header is needed here.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/result.hpp"
#include "runtime/wire/frame.hpp"
#include "runtime/wire/header.hpp"

namespace troupe::wire {

using Amounts = std::vector<std::pair<std::string, double>>;

// A stretch of time in which a role did one thing; ns of the host's monotonic clock.
struct Span {
  std::string state;  // "busy", "idle", "paused"
  std::string cause;  // "step", "no tickets"
  std::uint64_t begin = 0, end = 0;
};

struct RoleReport {
  std::string name, state;
  std::uint64_t actor = 0;  // actor id in its process; 0 without one
  std::uint64_t epoch = 0;
  std::uint32_t inbox = 0, pending = 0;
  std::uint64_t frames_in = 0, frames_out = 0;
  // busy + paused + the sum of idle = wall, since the role started
  double busy_s = 0, paused_s = 0, wall_s = 0;
  Amounts idle_s;   // by cause
  Amounts amounts;  // "version", "tokens", ...
  std::vector<Span> spans;
  std::uint64_t next_span = 0;  // ask for spans after this one next time
  std::string waits_for;        // the peer whose answer it waits for longest; "" if none
};

Frame query_role_frame(const Header& header, std::uint64_t spans_after);
// Error: kData when the body is another one.
core::Result<std::uint64_t> read_query_role(const Frame& frame);
// Spans that would not fit a frame are left out, the newest first.
Frame role_report_frame(const Header& header, const RoleReport& report);
core::Result<RoleReport> read_role_report(const Frame& frame);

}  // namespace troupe::wire
