// Formats the status of a run: all of it as one JSON object, figures for Prometheus, and a page of
// text for people. Pure.
#pragma once

#include "apps/session/role_figures.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace troupe::session {

struct StatusFacts {
  actors::company::CompanyView company;
  RoleReports roles;           // the newest report of each, with its age
  std::string controller;      // its snapshot as JSON; "" when it did not answer
  double busy_together_s = 0;  // generators and policy busy at once, in all sessions so far
  double watched_s = 0;        // since the session began
  std::uint64_t groups = 0;    // of an update; 0 in supervised runs
  std::uint64_t frames = 0, bytes = 0, refused = 0, stray = 0;
};

std::string status_json(const StatusFacts& facts);
std::string status_metrics(const StatusFacts& facts);
// Takes the JSON, so that `troupe status` can print a run of another program version.
std::string status_page(const std::string& json);

// How a role spent its wall time, as shares of it.
struct RoleShares {
  double busy = 0;
  std::string idle_cause;  // what it waited for most while idle
  double idle = 0;         // share of time idle for that cause
};
// `role`: one of the objects in "roles" of the JSON.
RoleShares shares_of(const nlohmann::json& role);

}  // namespace troupe::session
