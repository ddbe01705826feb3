#include "apps/session/role_figures.hpp"

#include "runtime/core/find_value.hpp"

namespace troupe::session {
namespace {

constexpr const char* kRate = "tokens_per_s";

bool is_newer(const wire::RoleReport& one, const wire::RoleReport& other) {
  return one.epoch == other.epoch ? one.age_s < other.age_s : one.epoch > other.epoch;
}

void take(RoleReports& reports, const wire::RoleReport& brought) {
  const auto [place, fresh] = reports.try_emplace(brought.name, brought);
  if (fresh) return;
  wire::RoleReport& known = place->second;
  if (is_newer(brought, known)) {
    known = brought;
  } else if (const auto* const rate = wire::find_amount(brought.amounts, kRate);
             rate != nullptr && known.epoch == brought.epoch) {
    known.amounts.emplace_back(kRate, *rate);
  }
}

}  // namespace

std::map<std::string, std::string> nodes_by_role(const actors::company::CompanyView& view) {
  std::map<std::string, std::string> nodes;
  for (const actors::company::PlacedRole& placed : view.roles)
    nodes[placed.name] = placed.node;
  return nodes;
}

RoleReports newest_reports(RoleReports asked, const actors::company::CompanyView& view) {
  const auto places = nodes_by_role(view);
  for (const auto& node : view.nodes) {
    for (const wire::RoleReport& report : node.reports) {
      const std::string* const place = core::find_value(places, report.name);
      if (place != nullptr && *place == node.join.name) take(asked, report);
    }
  }
  return asked;
}

double amount_of(const wire::RoleReport& report, const std::string& name, double otherwise) {
  const double* const amount = wire::find_amount(report.amounts, name);
  return amount == nullptr ? otherwise : *amount;
}

}  // namespace troupe::session
