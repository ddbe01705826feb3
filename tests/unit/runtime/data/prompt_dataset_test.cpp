// Prompt files: columns, bounds, and errors that name file and line.
#include "runtime/data/prompt_dataset.hpp"

#include "tests/unit/runtime/parse/number_spellings.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace {

using namespace troupe;
using data::DatasetColumns;

class PromptDataset : public testing::Test {
 protected:
  PromptDataset()
      : folder_(std::filesystem::temp_directory_path() /
                ("troupe_dataset_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~PromptDataset() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }

  // The message with the folder cut off.
  std::string refusal(const std::string& name,
                      const std::string& text,
                      const DatasetColumns& columns = {},
                      core::ErrorCode code = core::ErrorCode::kData) {
    auto rows = data::load_prompts(file(name, text), columns);
    if (rows) return "accepted";
    EXPECT_EQ(rows.error().code, code);
    std::string message = rows.error().message;
    const auto at = message.find(folder_.string() + "/");
    if (at != message.npos) message.erase(at, folder_.string().size() + 1);
    return message;
  }

  std::filesystem::path folder_;
};

TEST_F(PromptDataset, ReadsLinesWithTheirColumns) {
  const auto path = file("a.jsonl",
                         "{\"q\": \"one\", \"a\": \"1\", \"x\": [1.5]}\n\n"
                         "{\"q\": \"two\", \"a\": 2}\r\n{\"q\": \"three\", \"a\": true}");
  auto rows = data::load_prompts(path, {.input_key = "q", .label_key = "a"});
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ((*rows)[0].prompt, "one");
  EXPECT_EQ((*rows)[0].label, "1");
  EXPECT_EQ((*rows)[0].columns_json, R"({"q":"one","a":"1","x":[1.5]})");
  EXPECT_EQ((*rows)[1].label, "2");
  EXPECT_EQ((*rows)[1].where, path + ":3") << "empty lines count";
  EXPECT_EQ((*rows)[2].label, "true");
}

TEST_F(PromptDataset, LabelsAndColumnsKeepTheSpellingOfEveryNumber) {
  for (const std::string number : test::kNumberSpellings) {
    const std::string row =
        R"({"input":"q","answer":)" + number + R"(,"x":{"y":[)" + number + "]}}";
    auto rows = data::load_prompts(file("n.jsonl", row), {.label_key = "answer"});
    ASSERT_TRUE(rows) << rows.error().message;
    EXPECT_EQ((*rows)[0].label, number);
    EXPECT_EQ((*rows)[0].columns_json, row);
    rows = data::load_prompts(file("n.json", "[" + row + "]"), {.label_key = "x"});
    ASSERT_TRUE(rows) << rows.error().message;
    EXPECT_EQ((*rows)[0].label, R"({"y":[)" + number + "]}");
  }
}

TEST_F(PromptDataset, ARowWithAColumnTwiceIsRefused) {
  EXPECT_EQ(refusal("a.jsonl", "{\"input\": \"q\"}\n{\"input\": \"a\", \"input\": \"b\"}"),
            "a.jsonl:2 has the name `input` twice");
  EXPECT_EQ(refusal("a.json", R"([{"input": "q", "x": {"k": 1, "k": 1}}])"),
            "a.json has the name `k` twice");
}

TEST_F(PromptDataset, ALabelThatIsNotTextIsJson) {
  const auto path = file("a.jsonl", R"({"input": "x", "tests": ["assert 1 == 1", {"n": 2.5}]})");
  auto rows = data::load_prompts(path, {.label_key = "tests"});
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->front().label, R"(["assert 1 == 1",{"n":2.5}])");
}

TEST_F(PromptDataset, ReadsAJsonArray) {
  auto rows = data::load_prompts(file("a.json", R"([{"input": "one"}, {"input": "two"}])"), {});
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[1].prompt, "two");
}

TEST_F(PromptDataset, JoinsFilesAndStopsAtMaxSamples) {
  const auto a = file("a.jsonl", "{\"input\": \"1\"}\n{\"input\": \"2\"}\n");
  const auto b = file("b.jsonl", "{\"input\": \"3\"}\nnot read\n");
  auto rows = data::load_prompts(a + "," + b, {.max_samples = 3});
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ(rows->back().prompt, "3");
}

TEST_F(PromptDataset, TemplateAndChatForms) {
  const auto path = file("a.jsonl", R"({"input": "2+2"})");
  auto rows = data::load_prompts(path, {.input_template = "Q: {}\nA:"});
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->front().prompt, "Q: 2+2\nA:");
  rows = data::load_prompts(path, {.apply_chat_template = true});
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->front().messages.size(), 1u);
  EXPECT_EQ(rows->front().messages[0].role, "user");
  EXPECT_EQ(rows->front().messages[0].content, "2+2");
  rows = data::load_prompts(
      file("m.jsonl",
           R"({"input": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]})"),
      {.apply_chat_template = true});
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->front().messages.size(), 2u);
  EXPECT_EQ(rows->front().messages[0].role, "system");
}

TEST_F(PromptDataset, BadLineIsNamed) {
  EXPECT_EQ(refusal("bad.jsonl", "{\"input\": \"a\"}\n{\"input\": \n")
                .find("bad.jsonl:2 is not valid JSON: parse error at line 1"),
            0u);
  EXPECT_EQ(refusal("bad.jsonl", "[1]\n"), "bad.jsonl:1: expected a JSON object");
  EXPECT_EQ(refusal("bad.jsonl", "{\"input\": \"\"}\n"), "bad.jsonl:1: column 'input' is empty");
  EXPECT_EQ(refusal("bad.jsonl", "{\"input\": 3}\n"),
            "bad.jsonl:1: column 'input' must be text or a list of messages");
  EXPECT_EQ(refusal("bad.jsonl", "{\"question\": \"x\", \"answer\": \"y\"}\n"),
            "bad.jsonl:1: no column 'input'; set --data.input_key to one of: question, answer");
  EXPECT_EQ(refusal("bad.jsonl", "{\"input\": \"x\"}\n", {.label_key = "answer"}),
            "bad.jsonl:1: no column 'answer'; set --data.label_key to one of: input");
  EXPECT_EQ(refusal("bad.jsonl", "{\"input\": \"x\", \"answer\": null}\n", {.label_key = "answer"}),
            "bad.jsonl:1: column 'answer' is null; give a label, or leave the row out");
  EXPECT_EQ(refusal("bad.jsonl", R"({"input": [{"role": "user"}]})", {.apply_chat_template = true}),
            "bad.jsonl:1: column 'input', turn 1.content is missing");
  EXPECT_NE(refusal("bad.jsonl", "{\"input\": \"\xff\"}\n"), "accepted") << "not UTF-8";
  EXPECT_EQ(refusal("bad.json", R"({"input": "x"})").find("bad.json: expected a list of objects"),
            0u);
}

TEST_F(PromptDataset, BoundsHold) {
  const std::string deep(100'000, '[');
  EXPECT_NE(refusal("deep.jsonl", "{\"input\": " + deep + "\n"), "accepted");
  EXPECT_NE(refusal("deep.jsonl", "{\"input\": \"x\", \"y\": " + std::string(70, '[') +
                                      std::string(70, ']') + "}\n")
                .find("nested deeper than 64"),
            std::string::npos);
  EXPECT_EQ(refusal("long.jsonl", "{\"input\": \"" + std::string(17u << 20, 'a') + "\"}\n"),
            "long.jsonl:1: line longer than 16 MiB");
}

TEST_F(PromptDataset, EmptyDatasetIsAnError) {
  EXPECT_EQ(refusal("none.jsonl", ""),
            "dataset none.jsonl: holds no rows; add prompts or choose another");
  EXPECT_EQ(refusal("none.jsonl", "\n\n").find("dataset none.jsonl: holds no rows"), 0u);
  EXPECT_EQ(refusal("none.json", "[]").find("dataset none.json: holds no rows"), 0u);
}

TEST_F(PromptDataset, MissingFileNamesTheFlag) {
  auto rows = data::load_prompts("/no/such/file.jsonl", {});
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code, core::ErrorCode::kNotFound);
  EXPECT_NE(rows.error().message.find("--data.prompt_dataset"), std::string::npos);
}

}  // namespace
