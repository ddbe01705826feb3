// Rows that are read as they are asked for: the right ones from any place, never many at once, and
// files that are not what they were.
#include "runtime/data/row_stream.hpp"

#include "runtime/data/limits.hpp"
#include "tests/unit/runtime/text/fixture.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace troupe::data {
namespace {

constexpr std::uint64_t kBuffer = 10;

class RowStreamTest : public testing::Test {
 protected:
  RowStreamTest() {
    // 0 to 2,999, a file without rows, 3,000 to 3,999 as CSV. Every seventh row is left out.
    std::ofstream lines(path("a.jsonl")), csv(path("b.csv"));
    lines << "\n";
    for (int i = 0; i < 3000; ++i)
      lines << "{\"n\": " << i << "}\n" << (i % 100 == 0 ? "\n" : "");
    csv << "n\n";
    for (int i = 3000; i < 4000; ++i)
      csv << i << '\n';
    lines.close();
    csv.close();
    std::ofstream(path("none.jsonl")) << "\n";
    for (const char* file : {"a.jsonl", "none.jsonl", "b.csv"}) {
      EXPECT_TRUE(index_->begin_file(path(file), "data.dataset"));
      const int rows = file == std::string("a.jsonl") ? 3000 : file[0] == 'b' ? 1000 : 0;
      for (int i = 0; i < rows; ++i)
        index_->add((index_->seen() % 7) != 0);
    }
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  BufferOrder order() const { return {index_->rows(), kBuffer, 5}; }
  RowStream stream() const {
    return {index_, order(), "data.dataset", parse::Numbers::kWholeIntegers};
  }
  // The number in the file that the used row `row` has: 1 to 6, 8 to 13 and so on.
  static std::uint64_t number(std::uint64_t row) { return row + row / 6 + 1; }
  static std::uint64_t number_in(const StreamedRow& row) {
    return row.json["n"].is_string() ? std::stoull(row.json["n"].get<std::string>())
                                     : row.json["n"].get<std::uint64_t>();
  }
  void expect_row(RowStream& rows, BufferOrder& order, std::uint64_t place) {
    const auto row = rows.at(place);
    ASSERT_TRUE(row) << row.error().message;
    const std::uint64_t expected = order.row_at(place);
    EXPECT_EQ((*row)->row, expected);
    ASSERT_EQ(number_in(**row), number(expected)) << "place " << place;
  }

  text::TempFolder folder_;
  std::shared_ptr<RowIndex> index_ = std::make_shared<RowIndex>();
};

TEST_F(RowStreamTest, TheIndexKnowsWhereEachRowIs) {
  EXPECT_EQ(index_->seen(), 4000u);
  EXPECT_EQ(index_->dropped(), 572u);
  EXPECT_EQ(index_->rows(), 3428u);
  EXPECT_EQ(index_->number_of(0), 1u);
  EXPECT_EQ(index_->number_of(5), 6u);
  EXPECT_EQ(index_->number_of(6), 8u);
  EXPECT_EQ(index_->number_of(3427), 3999u);
  EXPECT_EQ(index_->place_of(2570).file, 0u);  // 2570 + 428 + 1 = 2999
  EXPECT_EQ(index_->place_of(2570).number, 2999u);
  EXPECT_EQ(index_->place_of(2571).file, 2u);
  EXPECT_EQ(index_->place_of(2571).number, 0u);
}

TEST_F(RowStreamTest, GivesThreePassesAndHoldsLittle) {
  RowStream rows = stream();
  BufferOrder expected = order();
  for (std::uint64_t place = 0; place < 3 * index_->rows(); ++place) {
    ASSERT_NO_FATAL_FAILURE(expect_row(rows, expected, place));
    ASSERT_LE(rows.held(), kBuffer + limits::kStream_kept_rows);
  }
  EXPECT_GE(rows.held(), limits::kStream_kept_rows);
}

// As a run that was killed goes on, at any place of a pass.
TEST_F(RowStreamTest, AnyPlaceGivesTheSameRowsFromThereOn) {
  BufferOrder expected = order();
  for (const std::uint64_t start :
       {1u, 9u, 10u, 11u, 1700u, 2560u, 2575u, 3420u, 3427u, 3428u, 5000u}) {
    RowStream rows = stream();
    for (std::uint64_t place = start; place < start + 30; ++place)
      ASSERT_NO_FATAL_FAILURE(expect_row(rows, expected, place));
    EXPECT_LE(rows.held(), kBuffer + 30) << start;
  }
}

// Back far behind what is kept, forward over rows that nobody takes, and again.
TEST_F(RowStreamTest, PlacesMayBeAskedForInAnyOrder) {
  RowStream rows = stream();
  BufferOrder expected = order();
  for (const std::uint64_t place :
       {0u,   5u,   3u,    4u,    2000u, 2001u, 2000u, 2019u, 2005u, 3u,   6000u,
        100u, 101u, 3427u, 3428u, 3426u, 7u,    2500u, 2501u, 2600u, 2599u}) {
    for (std::uint64_t at = place; at < place + 3; ++at)
      ASSERT_NO_FATAL_FAILURE(expect_row(rows, expected, at));
  }
  for (std::uint64_t at = 5000; at-- > 4950;)
    ASSERT_NO_FATAL_FAILURE(expect_row(rows, expected, at));
}

TEST_F(RowStreamTest, PlacesAreNamed) {
  const RowIndex::Place place = index_->place_of(99);
  EXPECT_EQ(place.number, 116u);
  RowStream rows(index_, {index_->rows(), 1, 0}, "data.dataset", parse::Numbers::kWholeIntegers);
  const auto row = rows.at(99);
  ASSERT_TRUE(row);
  // Row 117 of the file, behind blank lines: the first, and those behind rows 0 and 100.
  EXPECT_EQ((*row)->where, path("a.jsonl") + ":120");
  EXPECT_EQ((*row)->file, 0u);
}

TEST_F(RowStreamTest, AFileThatChangedIsRefusedAndTriedAgain) {
  RowStream rows = stream();
  ASSERT_TRUE(rows.at(0));
  const std::string csv = path("b.csv");
  std::filesystem::rename(csv, path("kept"));
  std::ofstream(csv) << "n\n1\n";
  auto refused = rows.at(3000);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            csv +
                ": was changed while a run reads it; a file that is streamed stays as it is until "
                "the run has ended");
  std::filesystem::remove(csv);
  refused = rows.at(3000);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kNotFound);
  std::filesystem::rename(path("kept"), csv);
  BufferOrder expected = order();
  expect_row(rows, expected, 3000);
}

// One that is as long and as old, and has fewer rows.
TEST_F(RowStreamTest, AFileWithFewerRowsIsAnError) {
  const auto written = std::filesystem::last_write_time(path("b.csv"));
  const auto bytes = std::filesystem::file_size(path("b.csv"));
  std::ofstream(path("b.csv")) << "n\n" << std::string(bytes - 3, 'x') << '\n';
  std::filesystem::last_write_time(path("b.csv"), written);
  RowStream rows = stream();
  const auto refused = rows.at(3400);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("b.csv"), std::string::npos) << refused.error().message;
  EXPECT_EQ(refused.error().code, ErrorCode::kData);
}

TEST_F(RowStreamTest, AListIsNotStreamed) {
  std::ofstream(path("list.json")) << "[{\"n\": 1}]";
  RowIndex index;
  const auto refused = index.begin_file(path("list.json"), "data.dataset");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            path("list.json") +
                ": one list of objects, which is read whole; make it .jsonl "
                "(`troupe data convert`), or set --data.shuffle_buffer 0");
}

}  // namespace
}  // namespace troupe::data
