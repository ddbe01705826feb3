// Status in three forms: one JSON object (the truth), Prometheus text, and a page for people. Pure.
#pragma once

#include "actors/company/company.hpp"
#include "runtime/wire/role_report.hpp"

#include <map>
#include <string>

namespace troupe::app {

struct StatusFacts {
  actors::CompanyView company;
  std::map<std::string, wire::RoleReport> roles;  // the newest account of each
  std::string controller;                         // its snapshot as JSON; "" before and after a run
  double busy_together_s = 0;                     // generators and policy busy at once
  double watched_s = 0;                           // since the desk opened
  std::uint64_t frames = 0, bytes = 0, refused = 0, stray = 0;
};

std::string status_json(const StatusFacts& facts);
std::string status_metrics(const StatusFacts& facts);
// From the JSON, so that any version of the program can print it.
std::string status_page(const std::string& json);

}  // namespace troupe::app
