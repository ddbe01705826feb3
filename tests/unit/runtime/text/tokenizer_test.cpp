// Tokenizer: ids, byte spans and text both ways, without a model and against the golden file of the
// real one (30 strings whose ids llama.cpp gives for the same vocabulary).
#include "runtime/text/tokenizer.hpp"

#include "tests/unit/runtime/text/fixture.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

namespace troupe::text {
namespace {

using core::ErrorCode;

TEST(Tokenizer, ByteLevelIdsAreTheBytes) {
  const auto tokenizer = byte_level_tokenizer();
  const std::string text = "a é日🙂\n 12";
  const auto encoding = tokenizer.encode(text);
  ASSERT_TRUE(encoding) << encoding.error().message;
  EXPECT_EQ(encoding->ids, bytes_of(text));
  EXPECT_EQ(*tokenizer.decode(encoding->ids), text);
}

TEST(Tokenizer, SpansAreBytesOfTheText) {
  const auto tokenizer = byte_level_tokenizer();
  const auto encoding = tokenizer.encode("ab<|end|>c");
  ASSERT_TRUE(encoding);
  EXPECT_EQ(encoding->ids, (std::vector<TokenId>{'a', 'b', kEnd, 'c'}));
  EXPECT_EQ(encoding->offsets, (std::vector<ByteSpan>{{0, 1}, {1, 2}, {2, 9}, {9, 10}}));
}

TEST(Tokenizer, BadUtf8IsAnErrorThatNamesThePlace) {
  const auto tokenizer = byte_level_tokenizer();
  const auto one = tokenizer.encode("ab\xFFz");
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().code, ErrorCode::kData);
  EXPECT_NE(one.error().message.find("offset 2"), std::string::npos) << one.error().message;
}

TEST(Tokenizer, DecodingSkipsUnknownIdsAndMarksBadBytes) {
  const auto tokenizer = byte_level_tokenizer();
  EXPECT_EQ(*tokenizer.decode(std::vector<TokenId>{'a', 999, -1, 'b'}), "ab");
  EXPECT_EQ(*tokenizer.decode(std::vector<TokenId>{'a', 0xE6, 0x97, 'b'}), "a\uFFFDb");
  EXPECT_EQ(*tokenizer.decode(std::vector<TokenId>{'a', kEnd, 'b'}), "a<|end|>b");
  EXPECT_EQ(*tokenizer.decode(std::vector<TokenId>{'a', kEnd, 'b'}, true), "ab");
  EXPECT_EQ(*tokenizer.decode({}), "");
}

TEST(Tokenizer, TheBytesOfATokenMayBeAPartOfACharacter) {
  const auto tokenizer = byte_level_tokenizer();
  for (int byte = 0; byte < 256; ++byte)
    EXPECT_EQ(tokenizer.bytes_of(byte), std::string(1, static_cast<char>(byte))) << byte;
  EXPECT_EQ(tokenizer.bytes_of(kEnd), "<|end|>");
  EXPECT_EQ(tokenizer.bytes_of(257), std::nullopt);
  EXPECT_EQ(tokenizer.bytes_of(-1), std::nullopt);
}

// As SentencePiece vocabularies spell single bytes.
TEST(Tokenizer, AByteOfAFallbackIsThatByte) {
  auto tokenizer_json = byte_level_json();
  tokenizer_json["pre_tokenizer"] = nullptr;
  tokenizer_json["decoder"] = nlohmann::json::parse(
      R"({"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]})");
  tokenizer_json["model"]["byte_fallback"] = true;
  tokenizer_json["model"]["vocab"] = {
      {"<0xF0>", 0}, {"<0x9F>", 1}, {"a", 2}, {"<0xFG>", 3}, {"<|end|>", 256}};
  const auto tokenizer = Tokenizer::parse(tokenizer_json.dump(), {}, "fallback");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->bytes_of(0), "\xF0");
  EXPECT_EQ(tokenizer->bytes_of(1), "\x9F");
  EXPECT_EQ(tokenizer->bytes_of(2), "a");
  EXPECT_EQ(tokenizer->bytes_of(3), "<0xFG>");
}

TEST(Tokenizer, VocabularyLookups) {
  const auto tokenizer = byte_level_tokenizer();
  EXPECT_EQ(tokenizer.id_limit(), 257u);
  EXPECT_EQ(tokenizer.id_to_token('a'), "a");
  EXPECT_EQ(tokenizer.id_to_token(' '), "\u0120");
  EXPECT_EQ(tokenizer.id_to_token(kEnd), "<|end|>");
  EXPECT_EQ(tokenizer.id_to_token(257), std::nullopt);
  EXPECT_EQ(tokenizer.id_to_token(-1), std::nullopt);
  EXPECT_TRUE(tokenizer.is_special(kEnd));
  EXPECT_FALSE(tokenizer.is_special('a'));
  EXPECT_FALSE(tokenizer.is_special(-1));
}

TEST(Tokenizer, IdLimitCountsGaps) {
  auto written = byte_level_json();
  written["model"]["vocab"]["<|end|>"] = 300;
  written["added_tokens"][0]["id"] = 300;
  const auto tokenizer = Tokenizer::parse(written.dump(), {}, "gap");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->id_limit(), 301u);
}

TEST(Tokenizer, TruncationAndPaddingOfTheFileAreDropped) {
  auto written = byte_level_json();
  written["truncation"] = nlohmann::json::parse(
      R"({"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0})");
  written["padding"] = nlohmann::json::parse(
      R"({"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": null,
          "pad_id": 0, "pad_type_id": 0, "pad_token": "!"})");
  const auto tokenizer = Tokenizer::parse(written.dump(), {}, "cut");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->encode("abcde")->ids, bytes_of("abcde"));
}

TEST(Tokenizer, PostProcessorRunsOnlyWhenAsked) {
  auto written = byte_level_json();
  written["post_processor"] = nlohmann::json::parse(R"({
    "type": "TemplateProcessing",
    "single": [{"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "<|end|>", "type_id": 0}}],
    "pair": [],
    "special_tokens": {"<|end|>": {"id": "<|end|>", "ids": [256], "tokens": ["<|end|>"]}}
  })");
  const auto tokenizer = Tokenizer::parse(written.dump(), {}, "eos");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->encode("a")->ids, (std::vector<TokenId>{'a'}));
  const auto ended = tokenizer->encode("a", {.add_special = true});
  EXPECT_EQ(ended->ids, (std::vector<TokenId>{'a', kEnd}));
  EXPECT_EQ(ended->offsets.back(), (ByteSpan{0, 0}));
}

TEST(Tokenizer, PlainTextBeginsWithWhatIsPutInFrontAndHasNoEnd) {
  const auto framed = Tokenizer::parse(framed_byte_level_json().dump(), {}, "framed");
  ASSERT_TRUE(framed) << framed.error().message;
  EXPECT_EQ(framed->encode("ab", {.add_special = true})->ids,
            (std::vector<TokenId>{257, 'a', 'b', kEnd}));
  EXPECT_EQ(*framed->ids("ab", true), (std::vector<TokenId>{257, 'a', 'b'}));
  EXPECT_EQ(*framed->ids("ab", false), (std::vector<TokenId>{'a', 'b'}));
  EXPECT_EQ(*framed->ids("", true), (std::vector<TokenId>{257}));
  EXPECT_EQ(*framed->ids("<|bos|>a", true), (std::vector<TokenId>{257, 257, 'a'}));
  const Tokenizer bare = byte_level_tokenizer();
  EXPECT_EQ(*bare.ids("ab", true), (std::vector<TokenId>{'a', 'b'}));
}

TEST(Tokenizer, GoldenIdsOfTheRealSmallModel) {
  const auto folder = real_model_folder();
  if (folder.empty()) {
    GTEST_SKIP() << "LOUD SKIP: no SmolLM2-135M-Instruct under TROUPE_HOME; run ./dev demo once";
  }
  const auto tokenizer = Tokenizer::load(folder);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  std::ifstream file(std::string(TROUPE_TEST_DATA_DIR) + "/smollm2_tokenizer_golden.json");
  const auto golden = nlohmann::json::parse(file);
  ASSERT_EQ(golden.size(), 30u);
  for (const auto& entry : golden) {
    const auto text = entry.at("text").get<std::string>();
    const auto ids = entry.at("ids").get<std::vector<TokenId>>();
    const auto encoding = tokenizer->encode(text);
    ASSERT_TRUE(encoding);
    EXPECT_EQ(encoding->ids, ids) << text;
    EXPECT_EQ(*tokenizer->decode(ids), text);
  }
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_ids(), std::vector<TokenId>{2});
  EXPECT_EQ(tokenizer->special().pad_id, 2);
}

// The known gap that docs/text.md states: 21 bytes have no token and no unk stands in for them.
TEST(Tokenizer, RealSmallModelLacksTokensForTwentyOneBytes) {
  const auto folder = real_model_folder();
  if (folder.empty()) {
    GTEST_SKIP() << "LOUD SKIP: no SmolLM2-135M-Instruct under TROUPE_HOME; run ./dev demo once";
  }
  const auto tokenizer = Tokenizer::load(folder);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  std::set<std::string> tokens;
  for (std::size_t id = 0; id < tokenizer->id_limit(); ++id)
    tokens.insert(tokenizer->id_to_token(static_cast<TokenId>(id)).value_or(""));
  std::size_t missing = 0;
  for (unsigned byte = 0; byte < 256; ++byte)
    missing += tokens.contains(byte_letter(byte)) ? 0 : 1;
  EXPECT_EQ(missing, 21u);
}

}  // namespace
}  // namespace troupe::text
