// Which prompts a run sees, and how often, when files are blended by shares.
#include "actors/data/dataset_prompts.hpp"

#include "tests/unit/runtime/text/fixture.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>

namespace troupe::actors::data {
namespace {

class DatasetPromptsTest : public testing::Test {
 protected:
  DatasetPromptsTest() {
    write("a.jsonl", "a", 6);
    write("b.jsonl", "b", 2);
    options_.files = path("a.jsonl") + "," + path("b.jsonl");
    options_.seed = 7;
  }

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  void write(const std::string& name, const std::string& letter, int rows) {
    std::ofstream out(folder_.path() / name);
    for (int i = 0; i < rows; ++i)
      out << "{\"input\": \"" << letter << i << "\"}\n";
  }
  // How often each prompt comes in the first places of the stream.
  std::map<std::string, int> counts(std::uint64_t places) {
    auto prompts = DatasetPrompts::load(options_, tokenizer_, nullptr);
    EXPECT_TRUE(prompts);
    std::map<std::string, int> result;
    for (std::uint64_t i = 0; prompts && i < places; ++i)
      ++result[(*prompts)->at(i)->text];
    return result;
  }

  text::TempFolder folder_;
  text::Tokenizer tokenizer_ = text::byte_level_tokenizer();
  DatasetPromptsOptions options_;
};

TEST_F(DatasetPromptsTest, WithoutSharesEveryPromptComesOnceInAPass) {
  const auto seen = counts(8);
  EXPECT_EQ(seen.size(), 8u);
}

// What a stream gives is what is held, in the order of its buffer.
TEST_F(DatasetPromptsTest, AStreamHasThePromptsNotesAndColumnsOfHeldOnes) {
  std::ofstream out(path("c.jsonl"));
  for (int i = 0; i < 3000; ++i) {
    out << R"({"prompt": ")" << (i % 10 == 3 ? "far too long" : "p") << i << R"(", "answer": )" << i
        << (i == 1234 ? R"(, "rare": 1)" : "") << "}\n";
  }
  out.close();
  options_.files = path("c.jsonl") + "," + path("a.jsonl");
  options_.columns.label_key = "answer";
  write("a.jsonl", R"(a", "answer": "b)", 6);
  options_.prompt_tokens_max = 8;
  options_.drop_too_long = true;
  const auto held = DatasetPrompts::load(options_, tokenizer_, nullptr);
  ASSERT_TRUE(held) << held.error().message;
  options_.shuffle_buffer = 5;
  const auto streamed = DatasetPrompts::load(options_, tokenizer_, nullptr);
  ASSERT_TRUE(streamed) << streamed.error().message;
  EXPECT_EQ((*streamed)->size(), 2706u);
  EXPECT_EQ((*streamed)->size(), (*held)->size());
  EXPECT_EQ((*streamed)->longest(), (*held)->longest());
  EXPECT_EQ((*streamed)->notes(), (*held)->notes());
  EXPECT_EQ((*streamed)->columns(), (*held)->columns());
  for (const char* column : {"prompt", "answer", "input", "rare", "none"})
    EXPECT_EQ((*streamed)->has_column(column), (*held)->has_column(column)) << column;

  std::map<std::uint64_t, Prompt> all;
  for (std::uint64_t i = 0; i < (*held)->size(); ++i) {
    Prompt prompt = *(*held)->at(i);
    all.emplace(prompt.row, std::move(prompt));
  }
  ASSERT_EQ(all.size(), 2706u);
  std::vector<std::uint64_t> rows;
  for (std::uint64_t position = 0; position < 6000; ++position) {
    const auto prompt = (*streamed)->at(position);
    ASSERT_TRUE(prompt) << prompt.error().message;
    rows.push_back(prompt->row);
    const Prompt& same = all.at(prompt->row);
    ASSERT_EQ(prompt->text, same.text);
    EXPECT_EQ(prompt->tokens, same.tokens);
    EXPECT_EQ(prompt->label, same.label);
    EXPECT_EQ(prompt->columns, same.columns);
  }
  EXPECT_EQ(std::set<std::uint64_t>(rows.begin(), rows.begin() + 2706).size(), 2706u);
  // A run that resumes asks for tickets of before, and goes on.
  const auto resumed = DatasetPrompts::load(options_, tokenizer_, nullptr);
  for (const std::uint64_t position : {4000u, 4002u, 4001u, 2000u, 4003u, 5999u})
    EXPECT_EQ((*resumed)->at(position)->row, rows[position]) << position;
}

TEST_F(DatasetPromptsTest, AStreamEndsAtTheRowsThatEndALoad) {
  const auto refusal = [&] {
    options_.shuffle_buffer = 0;
    const auto held = DatasetPrompts::load(options_, tokenizer_, nullptr);
    options_.shuffle_buffer = 3;
    const auto streamed = DatasetPrompts::load(options_, tokenizer_, nullptr);
    EXPECT_FALSE(held || streamed);
    if (held || streamed) return std::string("accepted");
    EXPECT_EQ(streamed.error().message, held.error().message);
    return streamed.error().message;
  };
  options_.files = path("c.jsonl");
  std::ofstream(path("c.jsonl")) << "\n";
  EXPECT_EQ(refusal(),
            "dataset " + options_.files + ": holds no rows; add prompts or choose another");
  std::ofstream(path("c.jsonl")) << "{\"input\": \"1\"}\n{\"input\": \"\"}\n";
  EXPECT_EQ(refusal(), options_.files + ":2: column 'input' is empty");
  std::ofstream(path("c.jsonl")) << "{\"input\": \"1\"}\n{\"input\": \"123456\"}\n";
  options_.prompt_tokens_max = 4;
  EXPECT_NE(refusal().find("c.jsonl:2: the prompt has 6 tokens"), std::string::npos);
  options_.drop_too_long = true;
  options_.prompt_tokens_max = 0;
  std::ofstream(path("c.jsonl")) << "{\"input\": [{\"role\": \"user\", \"content\": \"x\"}]}\n";
  EXPECT_NE(refusal().find("c.jsonl:1: a chat prompt, but"), std::string::npos);
}

TEST_F(DatasetPromptsTest, PromptsThatAreTooLongAreAnErrorOrLeftOut) {
  std::ofstream(path("c.jsonl")) << "{\"input\": \"123456\"}\n{\"input\": \"12\"}\n"
                                    "{\"input\": \"1234567\"}\n{\"input\": \"3\"}\n";
  options_.files = path("a.jsonl") + "," + path("c.jsonl");
  options_.prompt_tokens_max = 4;
  const auto refused = DatasetPrompts::load(options_, tokenizer_, nullptr);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("c.jsonl:1: the prompt has 6 tokens, more than "
                                         "--data.prompt_max_len 4; shorten it, or leave such "
                                         "prompts out with --data.drop_too_long true"),
            std::string::npos)
      << refused.error().message;
  options_.drop_too_long = true;
  for (const auto& shares : {std::vector<double>(), std::vector<double>{0.5, 0.5}}) {
    options_.shares = shares;
    const auto prompts = DatasetPrompts::load(options_, tokenizer_, nullptr);
    ASSERT_TRUE(prompts) << prompts.error().message;
    EXPECT_EQ((*prompts)->size(), 8u);
    EXPECT_EQ((*prompts)->notes().back(), "2 of the 10 prompts of " + options_.files +
                                              " are longer than --data.prompt_max_len 4 and left "
                                              "out");
    std::map<std::string, std::uint64_t> rows;
    for (std::uint64_t i = 0; i < 64; ++i)
      rows[(*prompts)->at(i)->text] = (*prompts)->at(i)->row;
    EXPECT_EQ(rows.size(), 8u);
    EXPECT_EQ(rows.at("12"), 7u) << "rows keep their numbers";
    EXPECT_EQ(rows.at("3"), 9u);
  }
  options_.prompt_tokens_max = 1;
  options_.files = path("a.jsonl");
  options_.shares.clear();
  const auto none = DatasetPrompts::load(options_, tokenizer_, nullptr);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("all 6 prompts of"), std::string::npos)
      << none.error().message;
}

TEST_F(DatasetPromptsTest, ARowHasTheTeacherOfItsDomain) {
  std::ofstream(path("c.jsonl")) << R"({"input": "1", "kind": "code"})"
                                 << "\n"
                                 << R"({"input": "2", "kind": 7})"
                                 << "\n"
                                 << R"({"input": "3", "kind": "math"})"
                                 << "\n";
  options_.files = path("c.jsonl");
  options_.shuffle = false;
  options_.domains = {"kind", {"math", "code", "other"}};
  const auto prompts = DatasetPrompts::load(options_, tokenizer_, nullptr);
  ASSERT_TRUE(prompts) << prompts.error().message;
  EXPECT_EQ((*prompts)->at(0)->teacher, 1u);
  EXPECT_EQ((*prompts)->at(1)->teacher, 2u) << "other";
  EXPECT_EQ((*prompts)->at(2)->teacher, 0u);
  options_.domains.names = {"code", "7"};
  auto refused = DatasetPrompts::load(options_, tokenizer_, nullptr);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("c.jsonl:3: no teacher for 'math' in column 'kind'; name "
                                         "it in --teacher.domains"),
            std::string::npos)
      << refused.error().message;
  options_.domains.key = "field";
  refused = DatasetPrompts::load(options_, tokenizer_, nullptr);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("c.jsonl:1: no column 'field'"), std::string::npos)
      << refused.error().message;
}

TEST_F(DatasetPromptsTest, SharesSayHowOftenAFileComes) {
  options_.shares = {0.25, 0.75};
  int a = 0, b = 0;
  for (const auto& [prompt, times] : counts(8))
    (prompt[0] == 'a' ? a : b) += times;
  EXPECT_EQ(a, 2);
  EXPECT_EQ(b, 6);
}

TEST_F(DatasetPromptsTest, OneShareForTwoFilesIsRefused) {
  options_.shares = {1};
  const auto refused = DatasetPrompts::load(options_, tokenizer_, nullptr);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("data.probs"), std::string::npos);
}

}  // namespace
}  // namespace troupe::actors::data
