// Greetings and role reports there and back.
#include "runtime/wire/hello.hpp"

#include "runtime/wire/limits.hpp"
#include "runtime/wire/role_report.hpp"
#include "tests/unit/runtime/wire/raw_frames.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace troupe::wire {
namespace {

using core::ErrorCode;
using testing::some_header;

TEST(Hello, ComesBackAsItWas) {
  const auto read = read_hello(hello_frame({"node/gpu1", core::RunId{9}, 3, "secret", "f32/v1/0"}));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->name, "node/gpu1");
  EXPECT_EQ(read->run.value, 9u);
  EXPECT_EQ(read->epoch, 3u);
  EXPECT_EQ(read->pass, "secret");
  EXPECT_EQ(read->arithmetic, "f32/v1/0");
}

TEST(Hello, AnotherBodyIsNoHello) {
  const auto read = read_hello(ack_frame(some_header()));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kData);
}

RoleReport some_report() {
  RoleReport report;
  report.name = "generator/0";
  report.state = "generating";
  report.actor = 12;
  report.epoch = 4;
  report.inbox = 3;
  report.pending = 2;
  report.frames_in = 1000;
  report.frames_out = 1001;
  report.busy_s = 0.1;
  report.paused_s = 0.25;
  report.wall_s = 7.5;
  report.idle_s = {{"no tickets", 3.25}, {"weights", 1e-310}};
  report.amounts = {{"version", 7}, {"loss", std::numeric_limits<double>::infinity()}};
  report.spans = {{"busy", "step", 10, 20}, {"idle", "no tickets", 20, 35}};
  report.next_span = 9;
  report.waits_for = "data/0";
  return report;
}

TEST(RoleReport, ComesBackAsItWas) {
  const auto report = some_report();
  const auto read = read_role_report(role_report_frame(some_header(), report));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->name, report.name);
  EXPECT_EQ(read->state, report.state);
  EXPECT_EQ(read->actor, report.actor);
  EXPECT_EQ(read->epoch, report.epoch);
  EXPECT_EQ(read->inbox, report.inbox);
  EXPECT_EQ(read->pending, report.pending);
  EXPECT_EQ(read->frames_in, report.frames_in);
  EXPECT_EQ(read->frames_out, report.frames_out);
  EXPECT_EQ(read->busy_s, report.busy_s);
  EXPECT_EQ(read->paused_s, report.paused_s);
  EXPECT_EQ(read->wall_s, report.wall_s);
  EXPECT_EQ(read->idle_s, report.idle_s);
  EXPECT_EQ(read->amounts, report.amounts);
  ASSERT_EQ(read->spans.size(), 2u);
  EXPECT_EQ(read->spans[1].state, "idle");
  EXPECT_EQ(read->spans[1].cause, "no tickets");
  EXPECT_EQ(read->spans[1].begin, 20u);
  EXPECT_EQ(read->spans[1].end, 35u);
  EXPECT_EQ(read->next_span, 9u);
  EXPECT_EQ(read->waits_for, "data/0");
}

TEST(RoleReport, LeavesOutTheNewestSpansWhenTheyDoNotFit) {
  RoleReport report = some_report();
  report.name = std::string(100'000, 'n');
  report.amounts.assign(5000, {std::string(300, 'a'), 1.0});
  report.spans.assign(20'000, {"busy", std::string(100, 'x'), 1, 2});
  for (std::size_t i = 0; i < report.spans.size(); ++i)
    report.spans[i].begin = i;
  report.next_span = 50'000;
  const Frame frame = role_report_frame(some_header(), report);
  EXPECT_LE(frame.size_bytes(), limits::kFrame_bytes_max);
  const auto read = read_role_report(frame);
  ASSERT_TRUE(read);
  ASSERT_GT(read->spans.size(), 1000u);
  ASSERT_LT(read->spans.size(), 20'000u);
  EXPECT_EQ(read->spans.front().begin, 0u);
  EXPECT_EQ(read->next_span, 50'000 - (20'000 - read->spans.size()));
  EXPECT_EQ(read->name.size(), 256u);
}

TEST(RoleReport, TheQuestionNamesTheLastSpan) {
  EXPECT_EQ(*read_query_role(query_role_frame(some_header(), 77)), 77u);
  EXPECT_FALSE(read_query_role(ack_frame(some_header())));
  EXPECT_FALSE(read_role_report(ack_frame(some_header())));
  EXPECT_EQ(read_host_request(query_role_frame(some_header(), 0)), HostRequest::kQueryRole);
}

}  // namespace
}  // namespace troupe::wire
