// One reader for all formats of rows: the same rows with their places, and errors that say where.
#include "runtime/data/row_source.hpp"

#include "runtime/data/table_list.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace troupe::data {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

std::string sample(const std::string& name) {
  const char* const source = std::getenv("TROUPE_SOURCE_DIR");
  return (fs::path(source == nullptr ? "." : source) / "tests/data/tables" / name).string();
}

class RowSources : public testing::Test {
 protected:
  RowSources() { fs::create_directories(folder_); }
  ~RowSources() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& bytes) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return (folder_ / name).string();
  }

  // Each row behind its place, then the error, if there is one.
  Names rows(const std::string& path) {
    Names out;
    auto source = RowSource::open(path, "data.dataset", parse::Numbers::kAsWritten);
    if (!source) return {short_text(source.error().message)};
    for (;;) {
      const auto row = (*source)->next();
      if (!row) out.push_back(short_text(row.error().message));
      if (!row || *row == nullptr) return out;
      out.push_back(short_text((*source)->where()) + " " + parse::written_text(**row));
    }
  }
  static std::string short_text(const std::string& text) {
    const auto slash = text.find_last_of('/', text.find_first_of(": ", text.find('.')));
    return slash == text.npos ? text : text.substr(slash + 1);
  }

  const fs::path folder_ = fs::temp_directory_path() / ("sources" + std::to_string(::getpid()));
};

TEST_F(RowSources, EveryFormatGivesTheSameRows) {
  const Names all = {
      R"({"input":"2+3=","output":"5","messages":[{"role":"user","content":"hi"}],"score":0.5})",
      R"({"input":"4+4=","output":"8","messages":[{"role":"user","content":"x","tool_calls":["f"]}],"score":1.0})",
      R"({"input":"1+0=","messages":[]})"};
  for (const char* name : {"rows.jsonl", "rows.jsonl.gz", "rows.jsonl.zst", "rows.parquet",
                           "rows.feather", "rows.arrow"}) {
    Names expected;
    for (std::size_t i = 0; i < all.size(); ++i)
      expected.push_back(std::string(name) + ":" + std::to_string(i + 1) + " " + all[i]);
    EXPECT_EQ(rows(sample(name)), expected);
  }
  // The first bytes decide, not the name.
  fs::copy_file(sample("rows.parquet"), folder_ / "odd.jsonl");
  EXPECT_EQ(rows((folder_ / "odd.jsonl").string()).size(), 3u);
}

TEST_F(RowSources, ListsAndCsv) {
  EXPECT_EQ(rows(file("a.json", R"([{"a": 1}, {"a": 0.10}])")),
            (Names{R"(a.json item 1 {"a":1})", R"(a.json item 2 {"a":0.10})"}));
  EXPECT_EQ(rows(file("a.csv", "a,b\n1,x\n\"2\n3\",y\n4,z\n")),
            (Names{R"(a.csv:2 {"a":"1","b":"x"})", R"(a.csv:3 {"a":"2\n3","b":"y"})",
                   R"(a.csv:5 {"a":"4","b":"z"})"}));
  EXPECT_EQ(rows(file("b.csv", "a,b\n1\n")),
            (Names{"b.csv:2: 1 fields, the header has 2; put a field with a comma or a line break "
                   "in it into quotes"}));
  EXPECT_EQ(place_of_row("a.json.gz", 3), "a.json.gz item 3");
  EXPECT_EQ(place_of_row("a.parquet", 3), "a.parquet:3");
}

TEST_F(RowSources, BehindABadLineTheNextIsFound) {
  auto source = RowSource::open(file("a.jsonl", "{\"a\": 1}\nnot\n{\"a\": 2}\n"), "data.dataset",
                                parse::Numbers::kNearest);
  ASSERT_TRUE(source);
  ASSERT_TRUE((*source)->next());
  EXPECT_FALSE((*source)->next());
  EXPECT_TRUE((*source)->goes_on());
  const auto third = (*source)->next();
  ASSERT_TRUE(third && *third != nullptr);
  EXPECT_EQ((*third)->dump(), R"({"a":2})");
  EXPECT_TRUE((*source)->where().ends_with("a.jsonl:3"));
}

TEST_F(RowSources, ACutFileIsNoEnd) {
  std::ifstream in(sample("rows.jsonl.gz"), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  const Names told = rows(file("cut.jsonl.gz", whole.substr(0, whole.size() / 2)));
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back(), "cut.jsonl.gz: the gzip data end too early; was the file cut?");
}

TEST_F(RowSources, PatternsAndFoldersAreSortedFiles) {
  const std::string b = file("set/train-1.jsonl", "{}"), a = file("set/train-0.jsonl", "{}");
  const std::string state = file("set/state.json", "{}"), hidden = file("set/.x.jsonl", "{}");
  const std::string folder = (folder_ / "set").string();
  EXPECT_EQ(files_of_set(folder).value(), (Names{a, b}));
  EXPECT_EQ(files_of_set(folder + "/train-*.jsonl").value(), (Names{a, b}));
  EXPECT_EQ(files_of_sets(folder + "," + a).value(), (Names{a, b, a}));
  EXPECT_EQ(files_of_set("no/such.jsonl").value(), (Names{"no/such.jsonl"})) << "told when read";

  const auto none = files_of_set(folder + "/*.parquet");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("no file fits the pattern"), std::string::npos);
  file("set/train.csv", "a\n1\n");
  const auto mixed = files_of_set(folder);
  ASSERT_FALSE(mixed);
  EXPECT_NE(mixed.error().message.find("several formats (train-0.jsonl, train.csv)"),
            std::string::npos)
      << mixed.error().message;
}

}  // namespace
}  // namespace troupe::data
