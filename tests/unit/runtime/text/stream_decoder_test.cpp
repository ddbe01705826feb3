// StreamDecoder: no half character leaves, nothing waits longer than it must, and the pieces add
// up.
#include "runtime/text/stream_decoder.hpp"

#include "tests/unit/runtime/text/fixture.hpp"

#include <gtest/gtest.h>

namespace troupe::text {
namespace {

const std::string kBad = "\uFFFD";

std::vector<std::string> pieces(StreamDecoder& decoder, const std::vector<TokenId>& ids) {
  std::vector<std::string> all;
  for (const TokenId id : ids) {
    const auto piece = decoder.push(id);
    EXPECT_TRUE(piece) << piece.error().message;
    all.push_back(*piece);
  }
  return all;
}

std::string joined(const std::vector<std::string>& all) {
  std::string text;
  for (const auto& piece : all)
    text += piece;
  return text;
}

TEST(StreamDecoder, CharactersComeOutWholeWithTheirLastByte) {
  const auto tokenizer = byte_level_tokenizer();
  StreamDecoder decoder(tokenizer);
  EXPECT_EQ(pieces(decoder, bytes_of("aé日🙂b")),
            (std::vector<std::string>{"a", "", "é", "", "", "日", "", "", "", "🙂", "b"}));
  EXPECT_EQ(*decoder.finish(), "");
}

TEST(StreamDecoder, IncompleteCharacterAtTheEndIsMarkedByFinish) {
  const auto tokenizer = byte_level_tokenizer();
  StreamDecoder decoder(tokenizer);
  EXPECT_EQ(joined(pieces(decoder, {'x', 0xF0, 0x9F, 0x99})), "x");
  EXPECT_EQ(*decoder.finish(), kBad);
  EXPECT_EQ(joined(pieces(decoder, {'y'})), "y");  // as new
  EXPECT_EQ(*decoder.finish(), "");
}

TEST(StreamDecoder, BadBytesLeaveAsSoonAsTheyCannotBecomeACharacter) {
  const auto tokenizer = byte_level_tokenizer();
  StreamDecoder decoder(tokenizer);
  const auto all = pieces(decoder, std::vector<TokenId>(200, 0xFF));
  EXPECT_EQ(all[2], "");
  for (std::size_t i = 3; i < all.size(); ++i)
    EXPECT_EQ(all[i], kBad) << i;
  EXPECT_EQ(joined(pieces(decoder, {'a'})), kBad + kBad + kBad + "a");
  EXPECT_EQ(*decoder.finish(), "");
}

TEST(StreamDecoder, SpecialTokensAreSkippedOrShown) {
  const auto tokenizer = byte_level_tokenizer();
  StreamDecoder skipping(tokenizer);
  EXPECT_EQ(joined(pieces(skipping, {'a', kEnd, 'b'})), "ab");
  StreamDecoder showing(tokenizer, /*skip_special=*/false);
  EXPECT_EQ(joined(pieces(showing, {'a', kEnd, 'b'})), "a<|end|>b");
}

TEST(StreamDecoder, UnknownIdsGiveNothing) {
  const auto tokenizer = byte_level_tokenizer();
  StreamDecoder decoder(tokenizer);
  EXPECT_EQ(joined(pieces(decoder, {'a', 99999, -5, 'b'})), "ab");
}

TEST(StreamDecoder, OutlivesTheTokenizerItCameFrom) {
  auto tokenizer = std::make_unique<Tokenizer>(byte_level_tokenizer());
  StreamDecoder decoder(*tokenizer);
  tokenizer.reset();
  EXPECT_EQ(joined(pieces(decoder, {'a'})), "a");
}

TEST(StreamDecoder, PiecesOfRandomBytesAddUpToDecode) {
  const auto tokenizer = byte_level_tokenizer();
  std::uint64_t state = 7;
  const auto draw = [&state](std::uint64_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<TokenId>((state >> 33) % bound);
  };
  const std::string text = "ab é日🙂ü ½\u0301";
  for (int round = 0; round < 400; ++round) {
    std::vector<TokenId> ids;
    while (ids.size() < 60) {
      const auto run = bytes_of(text);
      const auto from = static_cast<std::ptrdiff_t>(draw(run.size()));
      if (draw(2) == 0) ids.insert(ids.end(), run.begin() + from, run.end());
      ids.push_back(draw(2) == 0 ? 0x80 + draw(0x80) : draw(257));
    }
    StreamDecoder decoder(tokenizer, /*skip_special=*/false);
    auto all = joined(pieces(decoder, ids));
    all += *decoder.finish();
    ASSERT_EQ(all, *tokenizer.decode(ids)) << "round " << round;
  }
}

// A sentencepiece-like vocabulary: pieces with a visible space, bytes for the rest.
Tokenizer byte_fallback_tokenizer() {
  auto written = byte_level_json();
  auto vocab = nlohmann::json::object();
  vocab["<unk>"] = 0;
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    vocab[name] = 1 + byte;
  }
  vocab["\u2581a"] = 257;
  vocab["b"] = 258;
  vocab["<|end|>"] = 259;
  written["added_tokens"][0]["id"] = 259;
  written["model"]["vocab"] = vocab;
  written["model"]["byte_fallback"] = true;
  written["pre_tokenizer"] = nullptr;
  written["decoder"] = nlohmann::json::parse(R"({"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
    {"type": "ByteFallback"}, {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})");
  auto tokenizer = Tokenizer::parse(written.dump(), {}, "byte fallback");
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return *tokenizer;
}

TEST(StreamDecoder, OnlyTheFirstPieceOfASequenceLosesItsSpace) {
  const auto tokenizer = byte_fallback_tokenizer();
  StreamDecoder decoder(tokenizer);
  EXPECT_EQ(pieces(decoder, {257, 257, 258, 259, 257}),
            (std::vector<std::string>{"a", " a", "b", "", " a"}));
}

TEST(StreamDecoder, ByteFallbackCharactersComeOutWhole) {
  const auto tokenizer = byte_fallback_tokenizer();
  StreamDecoder decoder(tokenizer);
  std::vector<TokenId> ids = {258};
  for (const TokenId byte : bytes_of("é日🙂日🙂日🙂日🙂"))
    ids.push_back(1 + byte);
  ids.push_back(258);
  auto all = joined(pieces(decoder, ids));
  all += *decoder.finish();
  EXPECT_EQ(all, *tokenizer.decode(ids));
  EXPECT_EQ(*tokenizer.decode(ids), "bé日🙂日🙂日🙂日🙂b");
}

}  // namespace
}  // namespace troupe::text
