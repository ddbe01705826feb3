#include "runtime/config/builder.hpp"

#include "runtime/config/refuse.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/error_list.hpp"

#include <algorithm>

namespace troupe::config {

Builder::Builder(const Table& table, Methods method) : table_(&table) {
  config_.method = method;
  for (const Row& row : table.rows()) {
    for (const auto& [methods, value] : row.defaults) {
      if ((methods & method) == 0) continue;
      const auto set = row.set(config_, {row.name, {std::string(value)}, false, ""});
      TROUPE_CHECK(set.has_value(), "a method's default fits its key");
    }
  }
}

core::Result<void> Builder::set(const Setting& setting) {
  const Row* row = table_->find(setting.name);
  if (row == nullptr) return core::fail(unknown_key(setting.name, setting.where, config_.method));
  if (!row->is_read_by(config_.method)) {
    return refuse(setting.where, ": ", setting.name, " is not read by `train ",
                  method_names(config_.method), "` (only by ", method_names(row->only), ")", kThen,
                  "take it out");
  }
  TROUPE_TRY(row->set(config_, setting));
  origins_[setting.name] = setting.where;
  return {};
}

core::Result<void> Builder::set_all(std::span<const Setting> settings) {
  core::ErrorList wrong;
  for (const Setting& setting : settings)
    wrong.take(set(setting));
  return wrong.result();
}

core::Result<void> Builder::set_run(std::span<const Setting> settings) {
  for (const Row& row : table_->rows()) {
    const auto same = [&](const Setting& one) { return one.name == row.name; };
    if (row.older.empty() || !row.is_read_by(config_.method)) continue;
    if (std::ranges::any_of(settings, same)) continue;
    const std::string where = "a run that is older than the key";
    TROUPE_TRY(set({row.name, {std::string(row.older)}, false, where}));
  }
  return set_all(settings);
}

namespace {

// A supervised run is a company of processes when its trainer has several ranks, or something is
// said about the company.
bool asks_for_company(const TrainConfig& config, const Origins& origins) {
  const auto first = origins.lower_bound("cluster.");
  return config.actor.ranks > 1 ||
         (first != origins.end() && std::string_view(first->first).starts_with("cluster."));
}

}  // namespace

core::Result<TrainConfig> Builder::finish() const {
  TrainConfig config = config_;
  if (!origins_.contains("train.lanes"))
    config.train.lanes = std::max({config.train.lanes, config.actor.ranks, config.critic.ranks});
  if (!origins_.contains("cluster.transport") && asks_for_company(config, origins_))
    config.cluster.transport = Transport::kCaf;
  TROUPE_TRY(check(config, *table_, origins_));
  return config;
}

core::Result<Methods> method_of(std::span<const Setting> settings, Methods asked) {
  Methods method = asked;
  for (const Setting& setting : settings) {
    if (setting.name != "method" || setting.values.size() != 1) continue;
    TrainConfig config;
    TROUPE_TRY(keys().find("method")->set(config, setting));
    if (method != kNoMethod && method != config.method) {
      return refuse(setting.where, ": this is a configuration of `train ",
                    method_names(config.method), "`, not of `train ", method_names(method), "`");
    }
    method = config.method;
  }
  return method == kNoMethod ? kPpo : method;
}

}  // namespace troupe::config
