// Answers tests/oracle/critic_test.py: one JSON object a line in, one out.
//   {"op": "loss", "clip", "weight", "values", "old", "returns"} -> {"loss", "gradient", "clipped",
//    "explained"}
//   {"op": "update", "folder", "out", "lr", "max_norm", "clip", "epochs", "rows", "groups":
//   [{"prompt",
//    "responses"}], "returns"} -> {"values", "metrics"}; the critic after one update is in `out`.
#include "runtime/core/team.hpp"
#include "runtime/learn/rl/critic_trainer.hpp"
#include "runtime/model/params.hpp"
#include "tests/unit/runtime/learn/loss_gradients.hpp"

#include <nlohmann/json.hpp>

#include <iostream>
#include <string>

namespace {

using namespace troupe;
using nlohmann::json;

json failed(const core::Error& error) {
  return {{"error", error.message}};
}

json loss(const json& in) {
  learn::ValueBatch batch{in["old"], in["returns"], in["weight"]};
  const std::vector<double> values = in["values"];
  const auto result = learn::value_loss_and_gradient(in["clip"], batch, values);
  return {{"loss", result.loss},
          {"gradient", result.values},
          {"clipped", result.stats.clipped},
          {"explained", learn::explained_variance(values, batch.returns)}};
}

json update(const json& in) {
  core::SerialTeam team;
  learn::CriticSettings settings;
  settings.optim.adam.lr = in["lr"];
  settings.optim.lr_warmup_ratio = 0;
  settings.optim.min_lr_ratio = 1;
  settings.optim.max_norm = in["max_norm"];
  settings.batch.max_epochs = in["epochs"];
  settings.batch.micro_tokens_max = in["rows"];
  settings.value_clip = in["clip"];
  settings.total_steps = 1000;
  auto params = model::load_model(in["folder"].get<std::string>(), model::HeadKind::kScore);
  if (!params) return failed(params.error());
  auto trainer = learn::CriticTrainer::create(std::move(*params), settings, team);
  if (!trainer) return failed(trainer.error());
  std::vector<experience::Group> groups;
  for (const json& one : in["groups"]) {
    experience::Group group;
    group.ticket = {0, static_cast<std::uint32_t>(groups.size()), 0};
    group.prompt = one["prompt"].get<std::vector<std::int32_t>>();
    for (const json& response : one["responses"]) {
      group.samples.emplace_back();
      group.samples.back().tokens = response.get<std::vector<std::int32_t>>();
    }
    groups.push_back(std::move(group));
  }
  const auto values = (*trainer)->values(groups);
  if (!values) return failed(values.error());
  const auto report = (*trainer)->update(groups, *values, in["returns"].get<learn::TokenValues>());
  if (!report) return failed(report.error());
  const auto saved = model::save_model((*trainer)->master(), in["out"].get<std::string>(),
                                       model::StorageDtype::kF32, {});
  if (!saved) return failed(saved.error());
  json metrics = json::object();
  for (const auto& [name, value] : report->metrics)
    metrics[name] = value;
  return {{"values", *values}, {"metrics", std::move(metrics)}};
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const json in = json::parse(line);
    std::cout << (in["op"] == "loss" ? loss(in) : update(in)).dump() << std::endl;
  }
}
