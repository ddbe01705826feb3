// The report of a role's host about its role, and the frames that ask for it and carry it. A host
// answers even while the role is busy. Plain values; needs no schema header.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/wire/frame.hpp"
#include "runtime/wire/header.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::wire {

using Amounts = std::vector<std::pair<std::string, double>>;
// The amount of that name; null when there is none.
const double* find_amount(const Amounts& amounts, std::string_view name);

// A time span in which a role did one thing, in ns of the host's monotonic clock.
struct Span {
  std::string state;  // "busy", "idle", "paused"
  std::string cause;  // "step", "no tickets"
  std::uint64_t begin = 0, end = 0;
};

struct RoleReport {
  std::string name, state;
  std::uint64_t actor = 0;  // actor id in its process; 0 if it has none
  std::uint64_t epoch = 0;
  // Requests that wait or are being served, and calls of the role that wait for an answer.
  std::uint32_t inbox = 0, pending = 0;
  std::uint64_t frames_in = 0, frames_out = 0;
  // Seconds since the role started: busy + paused + the sum of idle = wall.
  double busy_s = 0, paused_s = 0, wall_s = 0;
  Amounts idle_s;   // by cause
  Amounts amounts;  // "version", "tokens", ...
  std::vector<Span> spans;
  std::uint64_t next_span = 0;  // the `spans_after` for the next query
  std::string waits_for;        // the peer whose answer is outstanding longest; or ""
  double age_s = 0;             // since it was made, when it was sent
};

Frame query_role_frame(const Header& header, std::uint64_t spans_after);
// Error: kData for another body.
core::Result<std::uint64_t> read_query_role(const Frame& frame);
// Leaves out the newest spans if not all fit a frame.
Frame role_report_frame(const Header& header, const RoleReport& report);
core::Result<RoleReport> read_role_report(const Frame& frame);

}  // namespace troupe::wire
