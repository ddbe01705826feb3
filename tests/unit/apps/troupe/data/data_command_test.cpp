// `troupe data`: rows as files have them, refused rows by cause, and what wrong words are told.
#include "apps/troupe/commands.hpp"
#include "apps/troupe/data/plain_stats.hpp"
#include "apps/troupe/data/refusals.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace troupe::app {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

class DataCommand : public testing::Test {
 protected:
  DataCommand() { fs::create_directories(folder_); }
  ~DataCommand() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  // What the command prints, then its error.
  static std::string said(Words words) {
    words.insert(words.begin(), "data");
    testing::internal::CaptureStdout();
    const auto done = run_command(words);
    const std::string text = testing::internal::GetCapturedStdout();
    return done ? text : text + "error: " + done.error().message;
  }

  const fs::path folder_ = fs::temp_directory_path() / ("data_cmd" + std::to_string(::getpid()));
};

TEST_F(DataCommand, PreviewPrintsTheFirstRowsAsTheyAreWritten) {
  const std::string rows = file("a.jsonl", "{\"a\": 1.50}\n\n{\"a\": \"x\"}\n{\"a\": 3}\n");
  EXPECT_EQ(said({"preview", rows, "--json", "--rows", "2"}), "{\"a\":1.50}\n{\"a\":\"x\"}\n");
  EXPECT_EQ(said({"preview", rows, "--rows", "1"}), rows + ":1\n  a: 1.50\n");
}

TEST_F(DataCommand, CheckCountsRefusedRowsByCause) {
  const std::string rows = file("a.jsonl", "{\"a\": 1}\nno\n[1]\n[2]\n{\"a\": 1}\n");
  const std::string told = said({"check", rows});
  EXPECT_NE(told.find("rows: 2, 1 of them repeat another\ncolumn a: 2 number\n"), told.npos)
      << told;
  EXPECT_NE(told.find("refused: 2 x expected a JSON object (" + rows + ":3, " + rows + ":4)\n"),
            told.npos)
      << told;
  EXPECT_NE(told.find("error: 3 of 5 rows are refused"), told.npos) << told;
  const auto stats = nlohmann::json::parse(said({"stats", file("b.csv", "a,b\n1,\n"), "--json"}));
  EXPECT_EQ(stats["rows"], 1);
  EXPECT_EQ(stats["columns"][0]["kinds"]["text"], 1);
}

TEST_F(DataCommand, ConvertWritesJsonLinesOnce) {
  const std::string in = file("a.csv", "q,a\n\"1,\n2\",x\n"), out = (folder_ / "o.jsonl").string();
  EXPECT_EQ(said({"convert", in, "--out", out}), out + ": 1 rows\n");
  std::ifstream written(out);
  std::string line;
  std::getline(written, line);
  EXPECT_EQ(line, R"({"q":"1,\n2","a":"x"})");
  EXPECT_NE(said({"convert", in, "--out", out}).find("exists; name another, or give --overwrite"),
            std::string::npos);
  const std::string bad = file("bad.jsonl", "{}\nno\n");
  EXPECT_NE(said({"convert", bad, "--out", out, "--overwrite"}).find("bad.jsonl:2"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(out + ".part"));
  EXPECT_TRUE(fs::exists(out)) << "what was there stays";
}

TEST_F(DataCommand, WrongWordsAreTold) {
  EXPECT_NE(said({"prevue"}).find("there is no `data prevue`; use preview, stats"),
            std::string::npos);
  EXPECT_NE(said({"preview"}).find("neither files nor a method are named"), std::string::npos);
  EXPECT_NE(said({"check", (folder_ / "none.parquet").string()}).find("no such file"),
            std::string::npos);
  EXPECT_NE(said({"stats", (folder_ / "*.parquet").string()}).find("no file fits the pattern"),
            std::string::npos);
  EXPECT_NE(said({"preview", "sft", "--rows", "x"}).find("--rows"), std::string::npos);
}

TEST(Refusals, CausesAreSortedByTheirRows) {
  Refusals refusals;
  const auto error = [](const std::string& what) {
    return core::advised(core::ErrorCode::kData, what, "mend it");
  };
  refusals.add(error("a.jsonl:1: column 'x' is empty"), "a.jsonl:1");
  for (const char* line : {"2", "3", "4", "5"}) {
    const std::string where = std::string("a.jsonl:") + line;
    refusals.add(error(where + ": no column 'y'"), where);
  }
  EXPECT_EQ(refusals.count(), 5u);
  EXPECT_EQ(refusals.lines(),
            (std::vector<std::string>{"4 x no column 'y' (a.jsonl:2, a.jsonl:3, a.jsonl:4, ...)",
                                      "  hint: mend it", "1 x column 'x' is empty (a.jsonl:1)",
                                      "  hint: mend it"}));
}

}  // namespace
}  // namespace troupe::app
