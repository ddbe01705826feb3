// A dataset that is not held has the rows, the notes and the errors of one that is.
#include "runtime/data/streamed_dataset.hpp"

#include "runtime/data/buffer_order.hpp"
#include "tests/unit/runtime/data/chat_support.hpp"
#include "tests/unit/runtime/text/fixture.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace troupe::data {
namespace {

std::vector<std::int32_t> copy(std::span<const std::int32_t> tokens) {
  return {tokens.begin(), tokens.end()};
}

class StreamedDatasetTest : public testing::Test {
 protected:
  StreamedDatasetTest() {
    auto chat = text::ChatTemplate::parse(kChat, {}, "test");
    settings_.chat = std::move(*chat);
    settings_.limits = {.max_len = 200, .context = 256, .vocab = 257};
    settings_.key = "data.dataset";
    settings_.files = write("t.jsonl", "");
  }
  std::string write(const std::string& name, const std::string& text) {
    folder_.write(name, text);
    return (folder_.path() / name).string();
  }
  core::Result<std::shared_ptr<const StreamedDataset>> survey() {
    return StreamedDataset::survey(settings_, [this](const SupervisedRow& row) {
      checked_.push_back(row.where());
      return check_ ? check_(row) : core::Result<void>();
    });
  }
  core::Result<SupervisedDataset> held() {
    return SupervisedDataset::load(settings_.files, settings_.key, settings_.columns,
                                   settings_.limits, settings_.tokenizer, &*settings_.chat);
  }
  // All rows of two passes are those of the held dataset, in the order of the buffer.
  void expect_as_held(std::uint64_t buffer) {
    const auto streamed = survey();
    ASSERT_TRUE(streamed) << streamed.error().message;
    const auto rows = held();
    ASSERT_TRUE(rows);
    ASSERT_EQ((*streamed)->size(), rows->size());
    EXPECT_EQ((*streamed)->tokens(), rows->tokens());
    EXPECT_EQ((*streamed)->dropped(), rows->dropped());
    EXPECT_EQ((*streamed)->notes(), rows->notes());
    EXPECT_EQ((*streamed)->has_chats(), rows->has_chats());
    BufferOrder order(rows->size(), buffer, 9);
    const auto reader = (*streamed)->reader(buffer, 9);
    EXPECT_EQ(reader->size(), rows->size());
    for (std::uint64_t place = 0; place < 2 * rows->size(); ++place) {
      const auto one = reader->at(place);
      ASSERT_TRUE(one) << one.error().message;
      const SupervisedRow other = rows->row(order.row_at(place));
      EXPECT_EQ(one->id, other.id);
      EXPECT_EQ(one->where(), other.where());
      EXPECT_EQ(copy(one->prompt), copy(other.prompt));
      EXPECT_EQ(copy(one->answer), copy(other.answer));
      EXPECT_EQ(copy(one->rejected), copy(other.rejected));
      EXPECT_TRUE(std::ranges::equal(one->learn, other.learn));
      EXPECT_EQ(copy(one->labels), copy(other.labels));
      EXPECT_TRUE(std::ranges::equal(one->shares, other.shares));
      EXPECT_EQ(one->margin, other.margin);
      EXPECT_EQ(one->desirable, other.desirable);
    }
  }
  std::string refusal() {
    const auto streamed = survey();
    const auto rows = held();
    if (streamed || rows) return "accepted";
    EXPECT_EQ(streamed.error().message, rows.error().message);
    EXPECT_EQ(streamed.error().code, rows.error().code);
    return streamed.error().message;
  }

  text::TempFolder folder_;
  StreamSettings settings_{.tokenizer = text::byte_level_tokenizer(with_end("<|end|>"))};
  StreamedDataset::Check check_;
  std::vector<std::string> checked_;
};

TEST_F(StreamedDatasetTest, AnswersAndDialoguesAreAsHeld) {
  std::string text;
  for (int i = 0; i < 20; ++i) {
    const std::string n = std::to_string(i);
    text += i % 3 == 0 ? R"({"messages": [{"role": "user", "content": ")" + n +
                             R"("}, {"role": "assistant", "content": "b"}]})"
                       : R"({"input": ")" + n + R"(=", "output": ")" + n + R"("})";
    text += i % 4 == 0 ? "\n\n" : "\n";
  }
  write("t.jsonl", text);
  settings_.files += "," + write("u.csv", "input,output\nx,y\n");
  for (const std::uint64_t buffer : {1u, 4u, 100u})
    expect_as_held(buffer);
}

TEST_F(StreamedDatasetTest, PairsRatedAnswersAndTextsAreAsHeld) {
  settings_.columns.kind = RowKind::kPair;
  settings_.columns.margin_key = "m";
  write("t.jsonl",
        "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\", \"m\": 2.5}\n"
        "{\"prompt\": \"d\", \"chosen\": \"e\", \"rejected\": \"f\", \"m\": 1}\n");
  expect_as_held(2);
  settings_.columns = {};
  settings_.columns.kind = RowKind::kRated;
  settings_.columns.label_key = "label";
  write("t.jsonl",
        "{\"prompt\": \"a\", \"completion\": \"b\", \"label\": true}\n"
        "{\"prompt\": \"d\", \"completion\": \"e\", \"label\": false}\n");
  expect_as_held(2);
  settings_.columns = {};
  settings_.columns.kind = RowKind::kText;
  write("t.jsonl", "{\"text\": \"abc\"}\n{\"text\": \"def\"}\n{\"text\": \"ghi\"}\n");
  expect_as_held(2);
}

TEST_F(StreamedDatasetTest, RowsThatAreLeftOutAreCounted) {
  std::string text;
  for (int i = 0; i < 30; ++i)
    text += R"({"input": "a", "output": ")" + std::string(i % 5 == 2 ? 40 : 3, 'x') + "\"}\n";
  write("t.jsonl", text);
  settings_.limits.max_len = 10;
  EXPECT_EQ(refusal(), settings_.files +
                           ":3: 42 tokens, more than --data.max_len 10; shorten it, "
                           "or leave such rows out with --data.drop_too_long true");
  settings_.limits.drop_too_long = true;
  expect_as_held(6);
  checked_.clear();
  settings_.limits.max_samples = 7;
  expect_as_held(3);
  EXPECT_EQ(checked_.size(), 7u);
  EXPECT_EQ(checked_.back(), settings_.files + ":9");
  settings_.limits.max_len = 2;
  EXPECT_EQ(refusal(),
            "dataset " + settings_.files + ": all 30 rows are longer than --data.max_len 2");
}

TEST_F(StreamedDatasetTest, BadRowsEndThePassAsTheyEndALoad) {
  EXPECT_EQ(refusal(),
            "dataset " + settings_.files + ": holds no rows; add some or choose another");
  write("t.jsonl", "{\"input\": \"a\", \"output\": \"b\"}\n{\"input\": \"a\"}\n");
  EXPECT_EQ(refusal(), settings_.files +
                           ":2: no column 'output'; set --data.output_key to one of: "
                           "input");
  write("t.jsonl", "{\"input\": \"a\", \"output\": \"b\"}\n{\"input\": \n");
  EXPECT_NE(refusal().find("t.jsonl:2 "), std::string::npos);
  check_ = [](const SupervisedRow& row) -> core::Result<void> {
    return fail(ErrorCode::kConfig, row.where() + " is too much");
  };
  const auto refused = survey();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, settings_.files + ":1 is too much");
}

}  // namespace
}  // namespace troupe::data
