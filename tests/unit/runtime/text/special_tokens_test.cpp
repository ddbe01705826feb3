// Which ids begin, end and pad a sequence, by the files of a model folder; and what is said where a
// file is missing or wrong.
#include "runtime/text/special_tokens.hpp"

#include "tests/unit/runtime/text/fixture.hpp"

#include <gtest/gtest.h>

namespace troupe::text {
namespace {

using core::ErrorCode;

class SpecialTokensOf : public testing::Test {
 protected:
  void SetUp() override { folder_.write("tokenizer.json", byte_level_json().dump()); }

  core::Result<Tokenizer> load() { return Tokenizer::load(folder_.path()); }
  std::string error_of_load(ErrorCode code) {
    const auto tokenizer = load();
    if (tokenizer) return "loaded";
    EXPECT_EQ(tokenizer.error().code, code) << tokenizer.error().message;
    return tokenizer.error().message;
  }

  TempFolder folder_;
};

TEST_F(SpecialTokensOf, FolderWithoutConfigsHasNone) {
  const auto tokenizer = load();
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->bos_id(), std::nullopt);
  EXPECT_TRUE(tokenizer->eos_ids().empty());
}

TEST_F(SpecialTokensOf, SpellingsMayBeStringsOrObjects) {
  folder_.write("tokenizer_config.json",
                R"({"bos_token": "b", "eos_token": {"content": "<|end|>"}, "unk_token": null})");
  const auto tokenizer = load();
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->bos_id(), 'b');
  EXPECT_EQ(tokenizer->eos_ids(), std::vector<TokenId>{kEnd});
  EXPECT_EQ(tokenizer->special().eos, "<|end|>");
}

TEST_F(SpecialTokensOf, SeveralEndsAddUpWithoutRepeats) {
  folder_.write("tokenizer_config.json", R"({"eos_token": "<|end|>"})");
  folder_.write("generation_config.json", R"({"eos_token_id": [10, 256, 13]})");
  folder_.write("config.json", R"({"eos_token_id": 13})");
  const auto tokenizer = load();
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->eos_ids(), (std::vector<TokenId>{kEnd, 10, 13}));
  EXPECT_TRUE(tokenizer->is_eos(13));
  EXPECT_FALSE(tokenizer->is_eos('a'));
}

TEST_F(SpecialTokensOf, SpecialTokensMapFillsWhatTheConfigLeavesOpen) {
  folder_.write("tokenizer_config.json", R"({"eos_token": "<|end|>"})");
  folder_.write("special_tokens_map.json", R"({"eos_token": "x", "pad_token": "p"})");
  const auto tokenizer = load();
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->eos_ids(), std::vector<TokenId>{kEnd});
  EXPECT_EQ(tokenizer->special().pad, "p");
}

TEST_F(SpecialTokensOf, PadIdOfGenerationConfigIsTheFallback) {
  folder_.write("generation_config.json", R"({"pad_token_id": 7, "bos_token_id": 5})");
  const auto tokenizer = load();
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(tokenizer->special().pad_id, 7);
  EXPECT_EQ(tokenizer->bos_id(), 5);
}

TEST_F(SpecialTokensOf, SpellingOutsideTheVocabularyNamesItsKey) {
  folder_.write("tokenizer_config.json", R"({"pad_token": "<|pad|>"})");
  const auto message = error_of_load(ErrorCode::kData);
  EXPECT_NE(message.find("pad_token \"<|pad|>\""), std::string::npos) << message;
}

TEST_F(SpecialTokensOf, MalformedFilesAreNamed) {
  const std::string bad[] = {"{",
                             "[1]",
                             "{\"eos_token\": 3}",
                             "{\"eos_token\": {\"content\": 1}}",
                             "\xFF\xFE",
                             std::string(100000, '['),
                             "{\"a\":" + std::string(200, '[')};
  for (const auto& text : bad) {
    folder_.write("tokenizer_config.json", text);
    const auto message = error_of_load(ErrorCode::kData);
    EXPECT_NE(message.find("tokenizer_config.json"), std::string::npos) << message;
  }
  folder_.write("tokenizer_config.json", "{}");
  for (const std::string text : {R"({"eos_token_id": "x"})", R"({"eos_token_id": [1, -1]})",
                                 R"({"pad_token_id": 1e99})", R"({"pad_token_id": 4294967296})"}) {
    folder_.write("generation_config.json", text);
    const auto message = error_of_load(ErrorCode::kData);
    EXPECT_NE(message.find("generation_config.json"), std::string::npos) << message;
    EXPECT_NE(message.find("token_id"), std::string::npos) << message;
  }
}

TEST_F(SpecialTokensOf, FolderWithoutTokenizerSaysWhatItNeeds) {
  std::filesystem::remove(folder_.path() / "tokenizer.json");
  const auto message = error_of_load(ErrorCode::kNotFound);
  EXPECT_NE(message.find((folder_.path() / "tokenizer.json").string()), std::string::npos);
  std::filesystem::create_directory(folder_.path() / "tokenizer.json");
  error_of_load(ErrorCode::kData);
}

}  // namespace
}  // namespace troupe::text
