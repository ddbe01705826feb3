// What a report picks of much: steps, groups, texts; and how it groups, names and reads small
// things.
#include "apps/report/budget.hpp"
#include "apps/report/configuration.hpp"
#include "apps/report/metric_groups.hpp"
#include "apps/report/run_parts.hpp"
#include "apps/report/run_report.hpp"
#include "apps/report/step_files.hpp"
#include "apps/report/svg_chart.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "runtime/config/render.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <regex>

namespace troupe::report {

using Places = std::vector<std::size_t>;

TEST(SpreadOrder, AnyBeginningIsSpread) {
  EXPECT_EQ(spread_order(0), Places{});
  EXPECT_EQ(spread_order(1), Places{0});
  EXPECT_EQ(spread_order(2), (Places{1, 0}));
  EXPECT_EQ(spread_order(9), (Places{8, 0, 4, 2, 6, 1, 3, 5, 7}));
  Places all = spread_order(1000);
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < 1000; ++i)
    ASSERT_EQ(all[i], i);
}

TEST(SpreadPlaces, AreEvenAndAllIfThereAreNoMore) {
  EXPECT_EQ(spread_places(10, 3), (Places{0, 3, 6}));
  EXPECT_EQ(spread_places(3, 5), (Places{0, 1, 2}));
  EXPECT_EQ(spread_places(0, 5), Places{});
}

TEST(Budget, CutsTextsAtCharactersAndSaysSo) {
  Budget budget(20, 10);
  EXPECT_EQ(budget.take("abc", 3), "abc");
  // The third byte is in the middle of the second umlaut.
  EXPECT_EQ(budget.take("\u00e4\u00f6\u00fc", 3), "\u00e4... [4 more bytes]");
  EXPECT_TRUE(budget.spent());
  EXPECT_TRUE(budget.take_tokens(6));
  EXPECT_FALSE(budget.take_tokens(5));
  EXPECT_TRUE(budget.take_tokens(4));
}

TEST(RunNames, HaveAsManyParentsAsTellThemApart) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(run_names({"/x/a", "/x/b/"}), (Names{"a", "b"}));
  EXPECT_EQ(run_names({"/x/1/run", "/x/2/run"}), (Names{"1/run", "2/run"}));
  EXPECT_EQ(run_names({"/y/1/run", "/x/1/run", "/z"}), (Names{"y/1/run", "x/1/run", "z"}));
}

// Each metric of docs/metrics.md stands in the group of its section, but for what the page says
// twice (the controller replaces the trainer's staleness).
TEST(MetricGroups, AreTheSectionsOfTheDocumentation) {
  const char* root = std::getenv("TROUPE_SOURCE_DIR");
  std::ifstream page(std::string(root != nullptr ? root : ".") + "/docs/metrics.md");
  const std::regex name("`([a-z]+/[a-z@A-Z0-9_]+)`");
  std::string section;
  int seen = 0;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) section = line.substr(3);
    const auto group = std::find(kMetricGroups.begin(), kMetricGroups.end(), section);
    if (!line.starts_with("| `") || group == kMetricGroups.end()) continue;
    const std::string cell = line.substr(0, line.find(" | "));
    for (std::sregex_iterator it(cell.begin(), cell.end(), name), end; it != end; ++it) {
      if ((*it)[1] == "async/staleness_mean") continue;
      EXPECT_EQ(kMetricGroups[group_of_metric((*it)[1].str())], section) << (*it)[1];
      ++seen;
    }
  }
  EXPECT_GT(seen, 50);
  EXPECT_EQ(kMetricGroups[group_of_metric("rewards/accuracies")], "Of supervised methods");
  EXPECT_EQ(kMetricGroups[group_of_metric("mine/own")], "Other");
}

TEST(ConfigLines, ReadWhatTheProgramWrites) {
  const auto lines = config_lines(
      "method: \"ppo\"\nactor:\n  model_name_or_path: \"a  # b\\\" c\"  # the command line\n  "
      "adam:\n"
      "    lr: 0.001  # x.yaml:3\n    betas: [0.9, 0.95]\ntrain:\n  seed: 5\n");
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[1].key, "actor.model_name_or_path");
  EXPECT_EQ(lines[1].value, "\"a  # b\\\" c\"");
  EXPECT_EQ(lines[1].origin, "the command line");
  EXPECT_EQ(lines[2].key, "actor.adam.lr");
  EXPECT_EQ(lines[2].origin, "x.yaml:3");
  EXPECT_EQ(lines[3].value, "[0.9, 0.95]");
  EXPECT_EQ(lines[4].key, "train.seed");
  EXPECT_EQ(config_value(lines, "method"), "ppo");
  EXPECT_EQ(config_value(lines, "none"), "");
}

TEST(ConfigLines, ReadEveryKeyOfTheTable) {
  const config::TrainConfig& config = config::default_config();
  const auto lines = config_lines(config::resolved_yaml(config, {}));
  std::size_t next = 0;
  for (const config::Row& row : config::keys().rows()) {
    if (!row.is_read_by(config.method)) continue;
    ASSERT_LT(next, lines.size());
    EXPECT_EQ(lines[next].key, row.name);
    EXPECT_EQ(lines[next++].value, row.yaml(config)) << row.name;
  }
  EXPECT_EQ(next, lines.size());
}

TEST(ConfigLines, GarbageHasNoKeys) {
  EXPECT_TRUE(config_lines("\x01\x02 nothing\n      deep: 1\n# a: b\n\n:::\n").size() <= 1u);
  EXPECT_TRUE(config_lines("").empty());
}

TEST(Faults, AreJudgedByTheWordsOfTheProgramsNotes) {
  for (const char* line :
       {"node generator-1 was lost: killed", "update 4, prompt 2 replaced: timeout",
        "reward/0 is started again: exit code 1", "waiting for reward format",
        "held-out after 2 updates: greedy 0.5 on 3 "
        "problems, 1 more without a score (0.1 s)"}) {
    EXPECT_TRUE(tells_of_fault(line)) << line;
  }
  for (const char* line : {"checkpoint /x/ckpt/step_000010", "node a joined from b",
                           "held-out after 2 updates: greedy 0.5 on 3 problems (0.1 s)",
                           "reward set 1 from update 3 on: format x 0.5"}) {
    EXPECT_FALSE(tells_of_fault(line)) << line;
  }
}

TEST(SvgChart, TicksAreRoundAndWithin) {
  using Values = std::vector<double>;
  EXPECT_EQ(ticks(0, 10, 5), (Values{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(ticks(-1, 1, 4), (Values{-1, -0.5, 0, 0.5, 1}));
  EXPECT_EQ(ticks(3, 3, 5), Values{});
}

// From 1 to 20: 1, 2, 5, 10, 20. From 1 to 10,000: powers of ten. From 3.2 to 4: no such value.
TEST(SvgChart, LogarithmicTicksArePlainNumbers) {
  const auto values = [](const std::vector<double>& ticks) {
    std::vector<long> out;
    for (const double tick : ticks)
      out.push_back(std::lround(std::pow(10, tick)));
    return out;
  };
  EXPECT_EQ(values(log_ticks(0, std::log10(20), 6)), (std::vector<long>{1, 2, 5, 10, 20}));
  EXPECT_EQ(values(log_ticks(0, 4, 6)), (std::vector<long>{1, 10, 100, 1000, 10'000}));
  EXPECT_GE(log_ticks(std::log10(3.2), std::log10(4), 6).size(), 2u);
}

// 0 at the bottom (340), 10 at the top (40); steps 1 to 3 from 70 to 580.
TEST(SvgChart, PutsValuesWhereTheyBelong) {
  Curve curve;
  curve.add(1, 0);
  curve.add(2, 5);
  curve.add(3, 10);
  const std::string svg = svg_chart("a<b>&\"c\"", {{"run </svg>\x01", &curve}}, Scale::kLinear);
  EXPECT_NE(svg.find("d=\"M70.0,340.0L325.0,190.0L580.0,40.0\""), svg.npos) << svg;
  EXPECT_NE(svg.find(">a&lt;b&gt;&amp;&quot;c&quot;<"), svg.npos);
  EXPECT_NE(svg.find(">run &lt;/svg&gt;<"), svg.npos);
  EXPECT_EQ(svg.find('\x01'), svg.npos);
}

// 1, 10 and 100 are as far apart from each other; 0 has no logarithm and breaks the line.
TEST(SvgChart, LogarithmicScale) {
  Curve curve;
  curve.add(0, 1);
  curve.add(1, 10);
  curve.add(2, 0);
  curve.add(4, 100);
  const std::string svg = svg_chart("m", {{"r", &curve}}, Scale::kLog);
  EXPECT_NE(svg.find("d=\"M70.0,340.0L197.5,190.0M580.0,40.0\""), svg.npos) << svg;
  EXPECT_NE(svg.find(">100<"), svg.npos);
}

}  // namespace troupe::report
