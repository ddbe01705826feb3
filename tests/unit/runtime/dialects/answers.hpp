// What tests of answers share: a model over a tokenizer of bytes, samples made by hand, and the
// events of a stream as JSON.
#pragma once

#include "runtime/dialects/answer.hpp"
#include "tests/unit/runtime/text/byte_tokenizer.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <memory>

namespace troupe::dialects::test {

constexpr std::int32_t kEnd = 256;

class Answers : public ::testing::Test {
 protected:
  Answers() {
    char pattern[] = "/tmp/troupe_answer_XXXXXX";
    folder_ = ::mkdtemp(pattern);
    troupe::test::write_byte_tokenizer(folder_);
    auto tokenizer = text::Tokenizer::load(folder_);
    EXPECT_TRUE(tokenizer);
    model_.reset(new ServedModel{.names = {"tiny"}, .tokenizer = *tokenizer});
  }
  ~Answers() override { std::filesystem::remove_all(folder_); }

  static engine::Sample sample(const std::string& bytes, engine::FinishReason finish) {
    engine::Sample out;
    for (const char c : bytes)
      out.tokens.push_back(static_cast<unsigned char>(c));
    if (finish == engine::FinishReason::kEos) out.tokens.push_back(kEnd);
    out.versions.assign(out.tokens.size(), 12);
    for (std::size_t i = 0; i < out.tokens.size(); ++i)
      out.raw_logprobs.push_back(-0.5f * static_cast<float>(i + 1));
    out.finish = finish;
    return out;
  }
  std::unique_ptr<Answer> answer(const GenerateRequest& request,
                                 const std::vector<EncodedPrompt>& prompts) {
    return make_answer(*model_, request, prompts, {"cmpl-1", 7}, 3);
  }
  static std::vector<nlohmann::json> read(const std::string& events) {
    std::vector<nlohmann::json> out;
    for (std::size_t at = 0; at < events.size();) {
      EXPECT_EQ(events.compare(at, 6, "data: "), 0);
      const auto end = events.find("\n\n", at);
      const std::string data = events.substr(at + 6, end - at - 6);
      out.push_back(data == "[DONE]" ? nlohmann::json(data) : nlohmann::json::parse(data));
      at = end + 2;
    }
    return out;
  }

  std::filesystem::path folder_;
  std::unique_ptr<ServedModel> model_;
  const std::vector<EncodedPrompt> prompts_ = {{{'a', 'b'}, "ab"}};
};

}  // namespace troupe::dialects::test
