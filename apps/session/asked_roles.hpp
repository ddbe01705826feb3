// Asks all roles of a run at once what they do: keeps the last answer of each, measures who is busy
// together, and writes the spans of their time into the trace. Owned by the status service; used on
// its strand, except where it says so.
#pragma once

#include "actors/company/company.hpp"
#include "actors/protocol/role_shell.hpp"
#include "apps/session/busy_together.hpp"
#include "apps/session/role_figures.hpp"
#include "apps/session/trace_file.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace troupe::session {

class AskedRoles {
 public:
  explicit AskedRoles(async::Timers& timers) : timers_(timers) {}
  // Before the first `ask`.
  void trace_into(TraceFile trace) { trace_.emplace(std::move(trace)); }
  void close();  // ends the trace

  // A role came up or was lost: asks it from now on, or no longer. Any thread.
  void up(const std::string& role);
  void lost(const std::string& role);

  // Asks the roles that are up, and the head's own, once. `view` and `context` outlive the task.
  async::task<void> ask(const actors::RoleContext& context,
                        const actors::company::CompanyView& view);
  // The newest report of each, with its age.
  RoleReports newest(const actors::company::CompanyView& view) const;
  double busy_together_s() const { return together_.seconds(); }

 private:
  async::task<core::Result<void>> ask_one(const actors::RoleContext* context,
                                          std::string role,
                                          std::string node);

  async::Timers& timers_;
  std::mutex mutex_;  // protects `up_`
  std::set<std::string> up_;
  RoleReports roles_;                          // as they answered
  std::map<std::string, core::TimePoint> at_;  // when, by role
  BusyTogether together_;
  std::optional<TraceFile> trace_;
};

}  // namespace troupe::session
