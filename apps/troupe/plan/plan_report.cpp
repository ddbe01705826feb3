// A plan as text and as JSON.
#include "apps/troupe/plan/plan_words.hpp"
#include "runtime/core/texts.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <vector>

namespace troupe::app {
namespace {

using nlohmann::ordered_json;
using plan::Kind;
using plan::MemoryUse;

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string room(width > text.size() ? width - text.size() : 0, ' ');
  return right ? room + text : text + room;
}

// Rows of cells in columns as wide as their widest cell; the first is aligned to the left.
std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    text += " ";
    for (std::size_t i = 0; i < row.size(); ++i)
      text += " " + padded(row[i], widths[i], i > 0) + (i + 1 < row.size() ? " " : "");
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text;
}

// The rows of one side (devices or hosts): a line for each kind that any role has, and the sum.
std::string memory_text(const plan::RunFacts& facts, const plan::Plan& plan, bool host) {
  const auto amount = [&](std::size_t role, Kind kind) {
    return host ? plan.memory[role].host(kind) : plan.memory[role].device(kind);
  };
  std::vector<std::vector<std::string>> rows(1, {""});
  for (const plan::Role& role : facts.roles)
    rows[0].push_back(role.name);
  for (std::size_t k = 0; k < plan::kKinds; ++k) {
    std::vector<std::string> row = {std::string(plan::kKindNames[k])};
    bool any = false;
    for (std::size_t role = 0; role < facts.roles.size(); ++role) {
      const std::int64_t bytes = amount(role, static_cast<Kind>(k));
      any = any || bytes > 0;
      row.push_back(bytes > 0 ? gigabytes(bytes) : "-");
    }
    if (any) rows.push_back(std::move(row));
  }
  if (rows.size() == 1) return "";
  std::vector<std::string> sums = {"sum"};
  for (const MemoryUse& use : plan.memory)
    sums.push_back(gigabytes(host ? use.host_total() : use.device_total()));
  rows.push_back(std::move(sums));
  if (!host && plan.judged) {
    rows.push_back({"there is"});
    rows.back().resize(facts.roles.size() + 1, gigabytes(facts.cluster.device_bytes));
  }
  return table_text(rows);
}

std::string placement_text(const plan::RunFacts& facts, const plan::Plan& plan) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < facts.roles.size(); ++i) {
    const plan::Role& role = facts.roles[i];
    const bool engine = std::holds_alternative<plan::EngineFacts>(role.facts);
    const bool trainer = std::holds_alternative<plan::TrainerFacts>(role.facts);
    const std::string unit = engine ? "engine" : trainer ? "rank" : "process";
    rows.push_back({padded(role.name, 12, false) +
                    padded(grouped(role.count) + " " + unit +
                               (role.count == 1     ? ""
                                : trainer || engine ? "s"
                                                    : "es"),
                           14, false) +
                    devices_words(plan.placement.devices[i], facts.cluster)});
  }
  if (plan.placement.idle > 0) {
    rows.push_back({padded("idle", 12, false) + grouped(plan.placement.idle) +
                    (plan.placement.idle == 1 ? " device" : " devices")});
  }
  return table_text(rows);
}

// Devices that several ranks, engines or scorers share.
std::string shared_text(const plan::RunFacts& facts, const plan::Plan& plan) {
  std::string text;
  for (const plan::DeviceLoad& load : plan.loads) {
    if (load.roles.size() < 2) continue;
    std::map<std::size_t, std::int64_t> counts;
    for (const std::size_t role : load.roles)
      ++counts[role];
    std::string names;
    for (const auto& [role, count] : counts) {
      names += (names.empty() ? "" : " + ") + (count > 1 ? grouped(count) + " x " : "") +
               facts.roles[role].name;
    }
    text += "  " + facts.cluster.name_of(load.device) + ": " + names + " = " +
            gigabytes(load.bytes) + " GB\n";
  }
  return text;
}

std::string models_text(const plan::RunFacts& facts) {
  const auto& trained = std::get<plan::TrainerFacts>(facts.roles.front().facts);
  const plan::ModelSizes& model = *trained.model;
  return core::printed(
      "%s, %.4g B weights, %.4g B of them trained; panels in %s\n",
      model.spec().architecture.c_str(), static_cast<double>(model.weights()) / 1e9,
      static_cast<double>(trained.trained) / 1e9, kernels::name_of(trained.panels));
}

ordered_json kinds_json(const MemoryUse& use, bool host) {
  ordered_json kinds = ordered_json::object();
  for (std::size_t k = 0; k < plan::kKinds; ++k) {
    const auto kind = static_cast<Kind>(k);
    const std::int64_t bytes = host ? use.host(kind) : use.device(kind);
    if (bytes > 0) kinds[std::string(plan::kKindNames[k])] = bytes;
  }
  return kinds;
}

ordered_json role_json(const plan::RunFacts& facts, const plan::Plan& plan, std::size_t role) {
  const MemoryUse& use = plan.memory[role];
  return {{"role", facts.roles[role].name},          {"count", facts.roles[role].count},
          {"devices", plan.placement.devices[role]}, {"bytes", use.device_total()},
          {"kinds", kinds_json(use, false)},         {"host_bytes", use.host_total()},
          {"host_kinds", kinds_json(use, true)}};
}

ordered_json batch_json(const plan::Batch& batch) {
  return {{"groups_of_step", batch.facts.groups},
          {"samples_of_step", batch.samples_of_step()},
          {"steps", batch.facts.steps},
          {"passes", batch.facts.passes},
          {"rows_of_step_max", batch.rows},
          {"micro_batches_of_step", batch.micro_batches},
          {"lanes", batch.facts.lanes},
          {"rounds_of_step", batch.rounds},
          {"micro_batches_of_rank", batch.of_rank()}};
}

}  // namespace

std::string plan_text(const plan::RunFacts& facts, const plan::Plan& plan) {
  std::string text = models_text(facts) + facts.cluster.text() + "\n\nplacement\n" +
                     placement_text(facts, plan) + "\nmemory of a device, GB\n" +
                     memory_text(facts, plan, false) + shared_text(facts, plan);
  const std::string hosts = memory_text(facts, plan, true);
  if (!hosts.empty()) {
    text += "\nmemory of the host for each of them, GB\n" + hosts + "  most on node " +
            std::to_string(plan.fullest_host.node) + ": " + gigabytes(plan.fullest_host.bytes) +
            " GB\n";
  }
  text += "\nbatches, when every sample is as long as it may be\n";
  for (const std::string& line : batch_words(plan.batch))
    text += "  " + line + "\n";
  for (const std::string& line : engine_words(facts))
    text += "\ngeneration\n  " + line + "\n";
  for (const std::string& line : push_words(plan.push))
    text += "\npush\n  " + line + "\n";
  text += "\n";
  for (const std::string& line : verdict_words(facts, plan))
    text += line + "\n";
  return text;
}

std::string plan_json(const plan::RunFacts& facts, const plan::Plan& plan) {
  ordered_json roles = ordered_json::array();
  for (std::size_t i = 0; i < facts.roles.size(); ++i)
    roles.push_back(role_json(facts, plan, i));
  ordered_json loads = ordered_json::array();
  for (const plan::DeviceLoad& load : plan.loads) {
    ordered_json names = ordered_json::array();
    for (const std::size_t role : load.roles)
      names.push_back(facts.roles[role].name);
    loads.push_back({{"device", load.device},
                     {"devices", load.devices},
                     {"roles", std::move(names)},
                     {"bytes", load.bytes}});
  }
  const ordered_json all = {{"cluster",
                             {{"nodes", facts.cluster.nodes},
                              {"devices_of_node", facts.cluster.devices_each},
                              {"card", facts.cluster.card},
                              {"device_bytes", facts.cluster.device_bytes},
                              {"host_bytes", facts.cluster.host_bytes}}},
                            {"roles", std::move(roles)},
                            {"loads", std::move(loads)},
                            {"idle_devices", plan.placement.idle},
                            {"fullest_host_bytes", plan.fullest_host.bytes},
                            {"batch", batch_json(plan.batch)},
                            {"push",
                             {{"image_bytes", plan.push.image},
                              {"engines", plan.push.engines},
                              {"remote", plan.push.remote}}},
                            {"judged", plan.judged},
                            {"fits", plan.fits()},
                            {"verdict", verdict_words(facts, plan)}};
  return all.dump() + "\n";
}

}  // namespace troupe::app
