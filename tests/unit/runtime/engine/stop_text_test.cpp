// Stop strings on a toy vocabulary: token i is the text below; 5 and 6 are halves of one character.
#include "runtime/engine/stop_text.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace troupe::engine {
namespace {

class ToyText final : public TokenText {
 public:
  std::string decode(std::span<const std::int32_t> tokens) const override {
    ++calls;
    longest = std::max(longest, tokens.size());
    static const char* const texts[] = {"a", "b", "\n", "END", "", "", "", " the"};
    std::string out;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] == 5) {
        const bool whole = i + 1 < tokens.size() && tokens[i + 1] == 6;
        out += whole ? "\xC3\xA9" : "\xEF\xBF\xBD";
      } else {
        out += texts[tokens[i]];
      }
    }
    return out;
  }
  mutable int calls = 0;
  mutable std::size_t longest = 0;
};

bool stops(const std::vector<std::int32_t>& tokens, const std::vector<std::string>& strings) {
  return completes_stop(ToyText(), tokens, strings);
}

TEST(CompletesStop, FindsAStringWithinOneToken) {
  EXPECT_TRUE(stops({0, 3}, {"END"}));
  EXPECT_TRUE(stops({0, 3}, {"N"}));
  EXPECT_FALSE(stops({0, 1}, {"END"}));
}

TEST(CompletesStop, FindsAStringAcrossTokens) {
  EXPECT_TRUE(stops({0, 2, 2}, {"\n\n"}));
  EXPECT_TRUE(stops({0, 1, 7}, {"ab t"}));
}

TEST(CompletesStop, AnOlderMatchDoesNotCountAgain) {
  EXPECT_FALSE(stops({3, 0}, {"END"}));
  EXPECT_FALSE(stops({3, 4}, {"END"}));
}

TEST(CompletesStop, SeesACharacterWhoseLastPieceIsNew) {
  EXPECT_FALSE(stops({0, 5}, {"\xC3\xA9"}));
  EXPECT_TRUE(stops({0, 5, 6}, {"\xC3\xA9"}));
}

TEST(CompletesStop, AnyOfSeveralStrings) {
  EXPECT_TRUE(stops({0, 2}, {"zzz", "\n"}));
  EXPECT_FALSE(stops({0, 0}, {"zzz", "\n"}));
}

TEST(CompletesStop, DecodesABoundedTail) {
  const ToyText text;
  const std::vector<std::int32_t> tokens(5000, 0);
  const std::vector<std::string> strings = {"abab"};
  EXPECT_FALSE(completes_stop(text, tokens, strings));
  EXPECT_EQ(text.calls, 2);
  EXPECT_LE(text.longest, 4 + kStopTailSlack_tokens);
}

}  // namespace
}  // namespace troupe::engine
