// metrics.jsonl.
#include "runtime/observe/metric_row.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <limits>

namespace {

using namespace troupe;
using observe::MetricRow;

TEST(MetricRow, OneObjectALineInOrder) {
  EXPECT_EQ(observe::metric_json({1, 1700000000.25, {{"reward/mean", 0.5}, {"kl/ref", 1e-6}}}),
            "{\"step\":1,\"time\":1700000000.25,\"reward/mean\":0.5,\"kl/ref\":1e-06}");
  EXPECT_EQ(observe::metric_json({2, 1700000001.25, {}}), "{\"step\":2,\"time\":1700000001.25}");
}

TEST(MetricRow, NumbersReadBackToTheSameBits) {
  for (const double value : {0.1 + 0.2, 1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0}) {
    const auto row = nlohmann::json::parse(observe::metric_json({1, 0, {{"x", value}}}));
    const double back = row["x"].get<double>();
    EXPECT_EQ(std::memcmp(&back, &value, sizeof value), 0) << value;
  }
}

TEST(MetricRow, NonFiniteValuesStayValidJson) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(observe::metric_json({1, 0, {{"a", std::nan("")}, {"b", kInf}, {"c", -kInf}}}),
            R"({"step":1,"time":0.0,"a":"nan","b":"inf","c":"-inf"})");
}

TEST(MetricRow, FindsByName) {
  const MetricRow row{1, 0, {{"a", 1}, {"b", 2}}};
  EXPECT_EQ(row.find("b"), 2);
  EXPECT_FALSE(row.find("c"));
}

}  // namespace
