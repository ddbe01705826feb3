// What nodes print, in the run folder: nothing twice, nothing dangerous, nothing without end.
#include "apps/session/node/node_logs.hpp"

#include "actors/node/limits.hpp"
#include "apps/session/limits.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace troupe::session {
namespace {

using Lines = std::vector<std::string>;

core::TimePoint second(int s) {
  return core::TimePoint(std::chrono::seconds(s));
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

actors::PutLog put_of(std::uint64_t first, Lines lines, std::uint64_t dropped = 0) {
  actors::PutLog put;
  put.node = "node/gpu1";
  put.first = first;
  put.lines = std::move(lines);
  put.dropped = dropped;
  return put;
}

class NodeLogsTest : public ::testing::Test {
 protected:
  std::string written() {
    logs_.reset();  // writes what waits
    return text_of(folder_.path() / "gpu1.log");
  }
  ::troupe::test::TempFolder folder_;
  std::unique_ptr<NodeLogs> logs_ = std::make_unique<NodeLogs>(folder_.path());
};

TEST_F(NodeLogsTest, LinesThatComeTwiceAreWrittenOnceAndAnotherProcessBeginsAnew) {
  logs_->put(put_of(0, {"one", "two"}), 7, second(1));
  logs_->put(put_of(0, {"one", "two", "three"}), 7, second(2));
  logs_->put(put_of(1, {"two"}), 7, second(3));
  logs_->put(put_of(0, {"one again"}), 8, second(4));
  EXPECT_EQ(logs_->last_lines("node/gpu1"), (Lines{"one", "two", "three", "one again"}));
  EXPECT_EQ(written(), "one\ntwo\nthree\none again\n");
}

TEST_F(NodeLogsTest, StrangeContentIsMadeSafe) {
  std::string binary("\x1b[2Jred\x1b]0;title\x07 \xff\xfe", 22);
  logs_->put(put_of(0, {binary, "a\rb\nc", std::string(100'000, 'x')}), 7, second(1));
  const Lines last = logs_->last_lines("node/gpu1");
  ASSERT_EQ(last.size(), 3u);
  EXPECT_EQ(last[0].find('\x1b'), std::string::npos);
  EXPECT_EQ(last[0].find('\xff'), std::string::npos);
  EXPECT_EQ(last[1], "ab c");
  EXPECT_EQ(last[2].size(), actors::node::limits::kLogLine_bytes_max);
  EXPECT_EQ(written(), last[0] + "\n" + last[1] + "\n" + last[2] + "\n");
}

TEST_F(NodeLogsTest, AFloodIsCutAndTheLossIsSaidInOneLine) {
  const std::string line(1023, 'x');
  const std::size_t fit = limits::kNodeLog_rate_max / 1024;
  for (std::size_t i = 0; i < 2 * fit; ++i)
    logs_->put(put_of(i, {line}), 7, second(1));
  logs_->put(put_of(2 * fit + 5, {"after"}, 5), 7, second(3));
  const std::string text = written();
  EXPECT_EQ(text.size(), fit * 1024 + text.substr(fit * 1024).size());
  EXPECT_EQ(text.substr(fit * 1024), "... " + std::to_string(fit + 5) +
                                         " lines were dropped here: too many at a time\nafter\n");
}

TEST_F(NodeLogsTest, ALongFileBeginsAnewAndTheLastOneIsKept) {
  const std::filesystem::path file = folder_.path() / "gpu1.log";
  std::ofstream(file) << "old\n";
  std::filesystem::resize_file(file, limits::kNodeLog_bytes_max);
  logs_->put(put_of(0, {"new"}), 7, second(1));
  EXPECT_EQ(written(), "new\n");
  EXPECT_EQ(std::filesystem::file_size(folder_.path() / "gpu1.log.1"), limits::kNodeLog_bytes_max);
}

TEST_F(NodeLogsTest, TheEndOfALocalNodesFileIsRead) {
  EXPECT_TRUE(logs_->last_lines("node/policy").empty());
  {
    std::ofstream out(folder_.path() / "policy.log");
    for (int i = 0; i < 5'000; ++i)
      out << "line " << i << "\n";
    out << "troupe: bug\x1b[0m";
  }
  const Lines last = logs_->last_lines("node/policy");
  ASSERT_EQ(last.size(), limits::kLastLines_max);
  EXPECT_EQ(last.front(), "line 4991");
  EXPECT_EQ(last.back(), "troupe: bug[0m");
}

TEST_F(NodeLogsTest, NoMoreThanSoManyNamesHaveFiles) {
  for (std::size_t i = 0; i < limits::kNodeLogs_max + 3; ++i) {
    actors::PutLog put = put_of(0, {"here"});
    put.node = "node/n" + std::to_string(i);
    logs_->put(std::move(put), 7, second(1));
  }
  logs_.reset();
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator(folder_.path()))
    ++files;
  EXPECT_EQ(files, limits::kNodeLogs_max);
}

}  // namespace
}  // namespace troupe::session
