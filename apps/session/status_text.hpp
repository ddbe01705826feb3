// Formats the status of a run: as one JSON object (complete), as Prometheus text, and as a page for
// people. Pure.
#pragma once

#include "actors/company/company.hpp"
#include "runtime/wire/role_report.hpp"

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <string>

namespace troupe::app {

struct StatusFacts {
  actors::CompanyView company;
  std::map<std::string, wire::RoleReport> roles;  // the newest report of each
  std::string controller;                         // its snapshot as JSON; "" before and after a run
  double busy_together_s = 0;                     // generators and policy busy at once
  double watched_s = 0;                           // since the session began
  std::uint64_t frames = 0, bytes = 0, refused = 0, stray = 0;
};

std::string status_json(const StatusFacts& facts);
std::string status_metrics(const StatusFacts& facts);
// Takes the JSON, so that `troupe status` can print a run of another program version.
std::string status_page(const std::string& json);

// How a role spent its wall time, as shares of it.
struct RoleShares {
  double busy = 0;
  std::string idle_cause;  // the cause it was idle most for
  double idle = 0;         // for that cause
};
// `role`: one of the objects in "roles" of the JSON.
RoleShares shares_of(const nlohmann::json& role);

}  // namespace troupe::app
