// Lines wait until they have arrived; when too many wait, the oldest are dropped and counted.
#include "actors/node/log_backlog.hpp"

#include "actors/node/limits.hpp"
#include "actors/protocol/limits.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace troupe::actors::node {
namespace {

using Lines = std::vector<std::string>;

TEST(LogBacklog, KeepsLinesUntilTheyHaveArrived) {
  LogBacklog log;
  EXPECT_TRUE(log.next().lines.empty());
  log.put("one\ntwo");
  log.put("three\n");
  EXPECT_EQ(log.next().lines, (Lines{"one", "two", "three"}));
  EXPECT_EQ(log.next().lines.size(), 3u) << "they are sent again";
  log.arrived(2);
  const LogBacklog::Batch batch = log.next();
  EXPECT_EQ(batch.lines, Lines{"three"});
  EXPECT_EQ(batch.first, 2u);
  EXPECT_EQ(batch.dropped, 0u);
  log.arrived(3);
  log.arrived(1);  // an answer that comes late
  EXPECT_TRUE(log.next().lines.empty());
}

TEST(LogBacklog, CutsALongLineAndFillsAMessageNoFurtherThanItMay) {
  LogBacklog log;
  log.put(std::string(10'000, 'x'));
  EXPECT_EQ(log.next().lines.front().size(), limits::kLogLine_bytes_max);
  for (int i = 0; i < 20; ++i)
    log.put(std::string(1500, 'y'));
  std::size_t bytes = 0;
  for (const std::string& line : log.next().lines)
    bytes += line.size();
  EXPECT_LE(bytes, actors::limits::kLogBatch_bytes_max);
  EXPECT_GT(bytes, actors::limits::kLogBatch_bytes_max / 2);
  LogBacklog many;
  many.put(std::string(5'000, '\n'));
  EXPECT_EQ(many.next().lines.size(), actors::limits::kLogBatch_lines_max);
}

TEST(LogBacklog, AFloodDropsTheOldestAndCountsThem) {
  LogBacklog log;
  log.put("lost with the flood");
  const std::size_t fit = limits::kLogKept_bytes_max / 1024;
  for (std::size_t i = 0; i < fit + 9; ++i)
    log.put(std::string(1019, '-') + std::to_string(1000 + i));  // 1024 bytes with the newline
  const LogBacklog::Batch batch = log.next();
  EXPECT_EQ(batch.dropped, 10u);
  EXPECT_EQ(batch.first, 10u);
  EXPECT_TRUE(batch.lines.front().ends_with("1009"));
  log.arrived(batch.first + batch.lines.size());
  EXPECT_EQ(log.next().dropped, 0u) << "that was said";
}

TEST(LogBacklog, ManyThreadsMayPrint) {
  LogBacklog log;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&log] {
      for (int i = 0; i < 2'000; ++i)
        log.put("a line");
    });
  }
  std::uint64_t got = 0, dropped = 0;
  const auto take = [&] {
    const LogBacklog::Batch batch = log.next();
    got += batch.lines.size();
    dropped += batch.dropped;
    log.arrived(batch.first + batch.lines.size());
    return !batch.lines.empty();
  };
  for (int i = 0; i < 100; ++i)
    take();
  for (std::thread& thread : threads)
    thread.join();
  while (take())
    continue;
  EXPECT_EQ(got + dropped, 8'000u);
}

}  // namespace
}  // namespace troupe::actors::node
