// What the status shows of nodes that are frozen or lost, of engines, and of roles that are sick.
#include "apps/session/status_text.hpp"

#include "actors/controller/snapshot.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace troupe::session {
namespace {

using nlohmann::json;

core::TimePoint at(double s) {
  return core::TimePoint(
      std::chrono::duration_cast<core::Duration>(std::chrono::duration<double>(s)));
}

wire::RoleReport report_of(const std::string& name, std::uint64_t epoch, double age_s) {
  wire::RoleReport report;
  report.name = name;
  report.epoch = epoch;
  report.age_s = age_s;
  report.amounts = {{"running", 12},
                    {"waiting", 3},
                    {"kv_blocks", 200},
                    {"kv_blocks_used", 50},
                    {"tokens", 1000 * age_s}};
  return report;
}

actors::company::PlacedRole placed(const std::string& name, const std::string& node) {
  actors::company::PlacedRole role;
  role.kind = name.substr(0, name.find('/'));
  role.name = name;
  role.node = node;
  role.state = actors::company::RoleState::kUp;
  return role;
}

actors::company::CompanyView::Node node_with(const std::string& name, wire::RoleReport report) {
  actors::company::CompanyView::Node node;
  node.join.name = name;
  node.join.host = "vm";
  node.join.roles = {"generator"};
  node.health = "suspect";
  node.silent_s = 1.5;
  node.memory = 3u << 20;
  node.reports.push_back(std::move(report));
  return node;
}

StatusFacts one_engine() {
  StatusFacts facts;
  facts.company.now = at(100);
  facts.company.roles = {placed("generator/0", "node/a")};
  wire::RoleReport brought = report_of("generator/0", 5, 1.5);
  brought.amounts.emplace_back("tokens_per_s", 812.0);
  facts.company.nodes = {node_with("node/a", brought)};
  facts.roles = newest_reports({}, facts.company);
  return facts;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(StatusText, TheFiguresOfAnEngineComeWithItsNodesSignsOfLifeAndSayTheirAge) {
  const StatusFacts facts = one_engine();
  const json status = json::parse(status_json(facts));
  EXPECT_EQ(status["roles"][0]["age_s"], 1.5);
  EXPECT_EQ(status["nodes"][0]["memory_bytes"], 3 << 20);
  const std::string page = status_page(status.dump());
  EXPECT_TRUE(has(page, "3 MiB suspect ")) << page;
  EXPECT_TRUE(has(page, "generator/0              12        3      812.0    25%   1.5 s old"))
      << page;
  const std::string metrics = status_metrics(facts);
  EXPECT_TRUE(has(metrics, "troupe_role_figures_age_seconds{role=\"generator/0\"} 1.5\n"))
      << metrics;
  EXPECT_TRUE(has(metrics, "troupe_node_memory_bytes{node=\"node/a\"} 3145728\n")) << metrics;
  EXPECT_TRUE(has(metrics, "troupe_role_amount{role=\"generator/0\",what=\"tokens_per_s\"} 812\n"));
}

TEST(StatusText, OfTwoReportsTheYoungerOfTheLatestStartCounts) {
  const StatusFacts facts = one_engine();
  const auto age_with = [&](const wire::RoleReport& asked) {
    return newest_reports({{asked.name, asked}}, facts.company).at("generator/0").age_s;
  };
  EXPECT_EQ(age_with(report_of("generator/0", 5, 0.2)), 0.2);
  EXPECT_EQ(age_with(report_of("generator/0", 5, 9)), 1.5);
  EXPECT_EQ(age_with(report_of("generator/0", 4, 0.2)), 1.5) << "of an earlier start";
  EXPECT_EQ(age_with(report_of("generator/0", 6, 9)), 9) << "of a later start";
  const auto young =
      newest_reports({{"generator/0", report_of("generator/0", 5, 0.2)}}, facts.company);
  EXPECT_EQ(amount_of(young.at("generator/0"), "tokens_per_s"), 812)
      << "known from the beats alone";
}

TEST(StatusText, ANodeSpeaksOnlyForTheRolesThatItHas) {
  StatusFacts facts = one_engine();
  facts.company.nodes.push_back(node_with("node/liar", report_of("generator/0", 9, 0)));
  facts.company.nodes.push_back(node_with("node/liar2", report_of("controller/0", 9, 0)));
  const RoleReports reports = newest_reports({}, facts.company);
  EXPECT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports.at("generator/0").epoch, 5u);
}

TEST(StatusText, ASickEngineIsShownWithTheCauseAndTheTimeUntilItsNextStart) {
  StatusFacts facts = one_engine();
  actors::company::PlacedRole sick = placed("generator/1", "");
  sick.state = actors::company::RoleState::kWanted;
  sick.sick = true;
  sick.not_before = at(118.5);
  sick.last_cause = "step 5 fails";
  facts.company.roles.push_back(sick);
  actors::company::PlacedRole waiting = placed("reference/0", "");
  waiting.state = actors::company::RoleState::kWanted;
  waiting.not_before = at(90);
  facts.company.roles.push_back(waiting);
  const json status = json::parse(status_json(facts));
  EXPECT_EQ(status["cast"][1]["sick"], true);
  EXPECT_EQ(status["cast"][1]["starts_in_s"], 18.5);
  EXPECT_EQ(status["cast"][0]["sick"], false);
  EXPECT_EQ(status["cast"][2]["starts_in_s"], 0.0);
  const std::string page = status_page(status.dump());
  EXPECT_TRUE(has(page, "generator/1 is started again in 18.5 s; it was sick: step 5 fails\n"))
      << page;
  EXPECT_TRUE(has(page, "reference/0 waits for a node\n")) << page;
  EXPECT_FALSE(has(page, "generator/0 is")) << "it is up";
  const std::string metrics = status_metrics(facts);
  EXPECT_TRUE(has(metrics, "troupe_role_starts_in_seconds{role=\"generator/1\"} 18.5\n"))
      << metrics;
  EXPECT_TRUE(has(metrics, "troupe_role_sick{role=\"generator/1\"} 1\n")) << metrics;
  EXPECT_TRUE(has(metrics, "troupe_role_sick{role=\"generator/0\"} 0\n")) << metrics;
}

TEST(StatusText, ALostNodeIsShownWithItsLastLines) {
  StatusFacts facts;
  facts.company.now = at(100);
  facts.company.lost = {{"node/gpu1",
                         "far",
                         "frozen: no sign of life for 2.0 s",
                         at(88),
                         {"started generator/1", "CUDA error"}}};
  const std::string page = status_page(status_json(facts));
  EXPECT_TRUE(has(page,
                  "lost 12.0 s ago: node/gpu1 (far): frozen: no sign of life for 2.0 s\n"
                  "  | started generator/1\n"
                  "  | CUDA error\n"))
      << page;
}

TEST(StatusText, TextThatIsNotUtf8DoesNotEndTheStatus) {
  StatusFacts facts = one_engine();
  facts.company.roles[0].last_cause = "\xff\xfe";
  EXPECT_TRUE(json::accept(status_json(facts)));
}

TEST(StatusText, ASupervisedRunHasStepsAndSpeaksOfNothingElse) {
  actors::controller::ControllerSnapshot run;
  run.done = 12;
  run.counts["waits for room"] = 2;
  StatusFacts facts = one_engine();
  facts.controller = actors::controller::snapshot_json(run);
  const std::string page = status_page(status_json(facts));
  EXPECT_NE(page.find("\nsteps done 12\nwaits for room: 2\n"), std::string::npos) << page;
  EXPECT_EQ(page.find("tickets"), std::string::npos) << page;
  EXPECT_EQ(page.find("reward"), std::string::npos) << page;
  run.rewards = {{"rule", "reward/0", 1}};
  facts.controller = actors::controller::snapshot_json(run);
  EXPECT_NE(status_page(status_json(facts)).find("updates done 12"), std::string::npos);
}

}  // namespace
}  // namespace troupe::session
