// The status of a run in three forms: one JSON object, which has all of it, Prometheus text, and a
// page for people. Pure.
#pragma once

#include "actors/company/company.hpp"
#include "runtime/wire/role_report.hpp"

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <string>

namespace troupe::app {

struct StatusFacts {
  actors::CompanyView company;
  std::map<std::string, wire::RoleReport> roles;  // the newest account of each
  std::string controller;                         // its snapshot as JSON; "" before and after a run
  double busy_together_s = 0;                     // generators and policy busy at once
  double watched_s = 0;                           // since the session began
  std::uint64_t frames = 0, bytes = 0, refused = 0, stray = 0;
};

std::string status_json(const StatusFacts& facts);
std::string status_metrics(const StatusFacts& facts);
// From the JSON, so that any version of the program can print it.
std::string status_page(const std::string& json);

// What a role's time went into, as shares of its wall time.
struct RoleShares {
  double busy = 0;
  std::string idle_cause;  // the cause it was idle most for
  double idle = 0;         // for that cause
};
// `role`: one of the objects in "roles" of the JSON.
RoleShares shares_of(const nlohmann::json& role);

}  // namespace troupe::app
