// Which column is read where the settings leave its name at the default, and what files that are
// no rows are told.
#include "runtime/data/default_columns.hpp"

#include "runtime/data/foreign_file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace troupe::data {
namespace {

Json row(const char* text) {
  return Json::parse(text);
}

TEST(DefaultColumns, TheNamedColumnComesFirstThenTheList) {
  EXPECT_EQ(prompt_column(row(R"({"input": "a", "prompt": "b"})"), "input"), "input");
  EXPECT_EQ(prompt_column(row(R"({"input": "a", "prompt": "b"})"), "prompt"), "prompt");
  EXPECT_EQ(prompt_column(row(R"({"prompt": "b"})"), "input"), "prompt");
  EXPECT_EQ(prompt_column(row(R"({"input": "b"})"), "prompt"), "input");
  EXPECT_EQ(prompt_column(row(R"({"prompt": "b", "messages": []})"), "input"), "messages");
  EXPECT_EQ(prompt_column(row(R"({"prompt": "b", "messages": "text"})"), "input"), "prompt");
  EXPECT_EQ(prompt_column(row(R"({"text": "b"})"), "input"), "input") << "an error names it";

  EXPECT_EQ(answer_column(row(R"({"output": 1, "completion": 2})"), "output", false), "output");
  EXPECT_EQ(answer_column(row(R"({"response": 1, "completion": 2})"), "output", false),
            "completion");
  EXPECT_EQ(answer_column(row(R"({"response": 1})"), "output", false), "response");
  EXPECT_EQ(answer_column(row(R"({"response": 1})"), "output", true), "output")
      << "a list of messages may hold its answer";
  EXPECT_EQ(answer_column(row(R"({"completion": 1})"), "output", true), "completion");

  EXPECT_EQ(text_column(row(R"({"text": "b"})"), "input"), "text");
  EXPECT_EQ(text_column(row(R"({"text": "b", "input": "a"})"), "input"), "input");
}

TEST(DefaultColumns, AWishIsNotReplaced) {
  EXPECT_EQ(prompt_column(row(R"({"prompt": "b", "input": "a"})"), "question"), "question");
  EXPECT_EQ(answer_column(row(R"({"completion": "b"})"), "reply", false), "reply");
  EXPECT_EQ(text_column(row(R"({"text": "b"})"), "body"), "body");
}

class ForeignFiles : public testing::Test {
 protected:
  ForeignFiles() { std::filesystem::create_directories(folder_); }
  ~ForeignFiles() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return (folder_ / name).string();
  }
  static std::string told(const std::string& name) {
    const auto checked = check_rows_file(name, "data.dataset");
    return checked ? "" : checked.error().message;
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("foreign" + std::to_string(::getpid()));
};

TEST_F(ForeignFiles, EachFormatIsNamedWithTheLineThatConvertsIt) {
  using namespace std::string_literals;
  const struct {
    const char *name, *what, *command;
    std::string bytes;
  } cases[] = {{"a.parquet", "Parquet", "pandas.read_parquet(\"", "PAR1\0\0"s},
               {"a.arrow", "an Arrow stream", "Dataset.from_file(\"", "\xFF\xFF\xFF\xFF\x10"s},
               {"a.feather", "an Arrow file", "pandas.read_feather(\"", "ARROW1\0\0"s},
               {"a.jsonl.gz", "compressed by gzip", "gunzip -c '", "\x1F\x8B\x08"s},
               {"a.jsonl.zst", "compressed by zstd", "zstd -dc '", "\x28\xB5\x2F\xFD"s},
               {"a.jsonl.xz", "compressed by xz", "xz -dc '",
                "\xFD"
                "7zXZ"s},
               {"a.jsonl.bz2", "compressed by bzip2", "bzip2 -dc '", "BZh91AY"s},
               {"a.zip", "a zip archive", "unzip '", "PK\x03\x04"s},
               {"a.xlsx", "an Excel sheet", "pandas.read_excel(\"", "PK\x03\x04"s},
               {"a.tsv", "separated by tabs", "sep=\"\\t\"", "a\tb\n"s}};
  for (const auto& one : cases) {
    const std::string path = file(one.name, one.bytes), message = told(path);
    EXPECT_EQ(message.find(path + ": is " + one.what + "; "), 0u) << message;
    EXPECT_NE(message.find(one.command), message.npos) << message;
    EXPECT_EQ(message.find("FILE"), message.npos) << message;
    EXPECT_EQ(message.find("ROWS"), message.npos) << message;
  }
  EXPECT_NE(told(file("b.jsonl.gz", "\x1F\x8B\x08")).find("> 'b.jsonl'"), std::string::npos);
  EXPECT_NE(told(file("b\".parquet", "PAR1")).find("read_parquet(\"FILE\")"), std::string::npos)
      << "a name that would end the quotes is not put between them";
  EXPECT_EQ(told(file("c.jsonl", "{\"a\": 1}\n")), "");
}

TEST_F(ForeignFiles, FoldersAndSetsOfAHub) {
  EXPECT_NE(told(folder_.string()).find("is a folder; it holds no .jsonl"), std::string::npos);
  file("train.parquet", "PAR1");
  EXPECT_NE(told(folder_.string()).find("train.parquet is Parquet"), std::string::npos);
  const std::string rows = file("rows.jsonl", "{}\n");
  EXPECT_NE(told(folder_.string()).find("as in " + rows), std::string::npos);

  const std::string hub = told("HuggingFaceH4/ultrachat_200k");
  EXPECT_NE(hub.find("load_dataset(\"HuggingFaceH4/ultrachat_200k\", split=\"train\")"),
            std::string::npos)
      << hub;
  for (const char* name : {"rows/train.jsonl", "/no/such", "nothing", "./a/b"})
    EXPECT_NE(told(name).find("no such file; set --data.dataset"), std::string::npos) << told(name);
}

}  // namespace
}  // namespace troupe::data
