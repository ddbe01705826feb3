// Reading files that are whole, torn, damaged, or not there.
#include "apps/report/line_reader.hpp"

#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace troupe::report {
namespace {

using namespace std::string_literals;

using nlohmann::ordered_json;

class LineReading : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& text) {
    const auto path = folder_.path() / "lines";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::vector<std::string> lines_of(LineReader& reader) {
    std::vector<std::string> lines;
    while (const auto line = reader.next())
      lines.emplace_back(*line);
    return lines;
  }
  ordered_json objects_of(const std::string& text, Notes& notes, ObjectBounds bounds = {}) {
    ordered_json out = ordered_json::array();
    read_ = read_objects(file(text), "f", bounds, notes, [&](ordered_json& one) {
      out.push_back(one);
      return true;
    });
    return out;
  }

  test::TempFolder folder_;
  ObjectsRead read_;
};

using Lines = std::vector<std::string>;

TEST_F(LineReading, GivesWholeLinesAndSaysThatTheLastIsTorn) {
  LineReader reader(file("a\n\nbc\nde"));
  EXPECT_EQ(lines_of(reader), (Lines{"a", "", "bc"}));
  EXPECT_TRUE(reader.torn());
  EXPECT_EQ(reader.line(), 3u);
  LineReader whole(file("a\n"));
  EXPECT_EQ(lines_of(whole), Lines{"a"});
  EXPECT_FALSE(whole.torn());
}

TEST_F(LineReading, SkipsALineBeyondTheBound) {
  LineReader reader(file("12345\n123456\n1\n"), 5);
  EXPECT_EQ(lines_of(reader), (Lines{"12345", "1"}));
  EXPECT_EQ(reader.too_long(), 1u);
}

// Longer than the pieces in which the file is read, so that it is dropped in several.
TEST_F(LineReading, KeepsNoHugeLineInMemory) {
  LineReader reader(file("a\n" + std::string(3'000'000, 'x') + "\nb\n" + std::string(70'000, 'y')),
                    1'000);
  EXPECT_EQ(lines_of(reader), (Lines{"a", "b"}));
  EXPECT_EQ(reader.too_long(), 1u);
  EXPECT_EQ(reader.line(), 3u);
  EXPECT_TRUE(reader.torn());
}

TEST_F(LineReading, ALineOverThePiecesOfTheReaderIsWhole) {
  const std::string line(600'000, 'z');
  LineReader reader(file(line + "\n" + line + "\n"));
  EXPECT_EQ(lines_of(reader), (Lines{line, line}));
}

TEST_F(LineReading, NoFileAndAFolderHaveNoLines) {
  LineReader none(folder_.path() / "none"), folder(folder_.path());
  EXPECT_FALSE(none.opened());
  EXPECT_EQ(none.next(), std::nullopt);
  EXPECT_FALSE(folder.opened());
}

TEST_F(LineReading, DamagedLinesAreCountedAndTheOthersRead) {
  Notes notes;
  EXPECT_EQ(objects_of("{\"a\":1}\ngarbage\n[1]\n{\"a\":2}\n{\"a\":", notes),
            ordered_json::parse(R"([{"a":1},{"a":2}])"));
  EXPECT_EQ(notes.all(),
            (Lines{"f: 2 lines are no JSON object and left out; the first is line 2",
                   "f: the last line has no end (the run is writing it, or was killed); it is left "
                   "out"}));
  EXPECT_FALSE(read_.whole);
  EXPECT_EQ(read_.objects, 2u);
}

TEST_F(LineReading, NulBytesAndDeepNestingAreDamage) {
  Notes notes;
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  objects_of("{\"a\":\"\0\"}\n"s + "{\"a\":" + deep + "}\n{}\n", notes);
  EXPECT_EQ(read_.objects, 1u);
  EXPECT_EQ(notes.all(), Lines{"f: 2 lines are no JSON object and left out; the first is line 1"});
}

TEST_F(LineReading, AFileBeyondItsBoundIsReadInPart) {
  Notes notes;
  std::string text;
  for (int i = 0; i < 300'000; ++i)
    text += "{\"a\":1}\n";
  objects_of(text, notes, {1 << 20, 1 << 20});
  EXPECT_EQ(read_.objects, (1u << 20) / 8);
  EXPECT_FALSE(read_.whole);
  EXPECT_EQ(notes.all(), Lines{"f: only the first 1 MiB are read"});
}

TEST_F(LineReading, AWholeFileIsWhole) {
  Notes notes;
  objects_of("{}\n{}\n", notes);
  EXPECT_TRUE(read_.whole);
  EXPECT_TRUE(notes.empty());
  EXPECT_EQ(read_whole(file("abcdef"), 6)->text, "abcdef");
  EXPECT_FALSE(read_whole(file("abcdef"), 6)->cut);
  EXPECT_EQ(read_whole(file("abcdef"), 4)->text, "abcd");
  EXPECT_TRUE(read_whole(file("abcdef"), 4)->cut);
  EXPECT_FALSE(read_whole(folder_.path() / "none", 4));
}

TEST(ReportNotes, FurtherOnesAreCounted) {
  Notes notes;
  for (int i = 0; i < 60; ++i)
    notes.add("n" + std::to_string(i));
  EXPECT_EQ(notes.all().size(), 51u);
  EXPECT_EQ(notes.all().back(), "and 10 more");
}

}  // namespace
}  // namespace troupe::report
