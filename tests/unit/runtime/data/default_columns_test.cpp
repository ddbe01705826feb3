// Which column is read where the settings leave its name at the default, and what files that are
// no rows are told.
#include "runtime/data/default_columns.hpp"

#include "runtime/data/foreign_file.hpp"
#include "runtime/data/table_list.hpp"

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
  } cases[] = {{"a.jsonl.xz", "compressed by xz", "xz -dc '",
                "\xFD"
                "7zXZ"s},
               {"a.jsonl.bz2", "compressed by bzip2", "bzip2 -dc '", "BZh91AY"s},
               {"a.zip", "a zip archive", "unzip '", "PK\x03\x04"s},
               {"a.xlsx", "an Excel sheet", "pandas.read_excel(\"", "PK\x03\x04"s},
               {"p.jsonl", "a Git LFS pointer, not the file itself", "git lfs pull",
                "version https://git-lfs.github.com/spec/v1\n"s},
               {"a.tsv", "separated by tabs", "sep=\"\\t\"", "a\tb\n"s}};
  for (const auto& one : cases) {
    const std::string path = file(one.name, one.bytes), message = told(path);
    EXPECT_EQ(message.find(path + ": is " + one.what + "; "), 0u) << message;
    EXPECT_NE(message.find(one.command), message.npos) << message;
    EXPECT_EQ(message.find("FILE"), message.npos) << message;
    EXPECT_EQ(message.find("ROWS"), message.npos) << message;
  }
  EXPECT_NE(told(file("b.jsonl.bz2", "BZh9")).find("> 'b.jsonl'"), std::string::npos);
  EXPECT_NE(told(file("b\".xlsx", "PK\x03\x04")).find("read_excel(\"FILE\")"), std::string::npos)
      << "a name that would end the quotes is not put between them";
  EXPECT_EQ(told(file("c.jsonl", "{\"a\": 1}\n")), "");
}

TEST_F(ForeignFiles, FoldersAndSetsOfAHub) {
  const auto why = [&] { return folder_without_rows(folder_).error.message; };
  EXPECT_NE(why().find("a folder without files of rows (.jsonl"), std::string::npos) << why();
  file("train.jsonl.xz",
       "\xFD"
       "7zXZ");
  EXPECT_NE(why().find("its train.jsonl.xz is compressed by xz. Make rows of each"),
            std::string::npos)
      << why();
  EXPECT_NE(told(folder_.string()).find("a folder, where a file is needed"), std::string::npos);

  const auto set = files_of_set("HuggingFaceH4/ultrachat_200k");
  ASSERT_FALSE(set);
  const std::string hub = set.error().message;
  EXPECT_NE(hub.find("nor in the hub cache"), std::string::npos) << hub;
  EXPECT_NE(hub.find("`troupe get HuggingFaceH4/ultrachat_200k --dataset` fetches it"),
            std::string::npos)
      << hub;
  for (const char* name : {"rows/train.jsonl", "/no/such", "nothing", "./a/b"})
    EXPECT_NE(told(name).find("no such file; set --data.dataset to .jsonl"), std::string::npos)
        << told(name);
}

}  // namespace
}  // namespace troupe::data
