// The newest figures of each role: what the status service asked for, or what came with its node's
// signs of life. Pure.
#pragma once

#include "actors/company/company.hpp"
#include "runtime/wire/role_report.hpp"

#include <map>
#include <string>

namespace troupe::session {

using RoleReports = std::map<std::string, wire::RoleReport>;  // by role

// The node of each role that the run wants; "" while it has none.
std::map<std::string, std::string> nodes_by_role(const actors::company::CompanyView& view);

// `asked`: each with its age. A node speaks only for the roles that it has. Of two reports of the
// same start of a role the younger counts, else the one of the later start; the rate of tokens
// comes from the signs of life alone.
RoleReports newest_reports(RoleReports asked, const actors::company::CompanyView& view);

// The amount of that name; `otherwise` when the report has none.
double amount_of(const wire::RoleReport& report, const std::string& name, double otherwise = 0);

}  // namespace troupe::session
