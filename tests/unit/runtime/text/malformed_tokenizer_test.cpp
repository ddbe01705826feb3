// Foreign tokenizer.json bytes: every broken one is an error with a sentence, none ends the
// process.
#include "runtime/text/tokenizer.hpp"
#include "tests/unit/runtime/text/fixture.hpp"

#include <gtest/gtest.h>

namespace troupe::text {
namespace {

using nlohmann::json;

// Reads the bytes; whatever comes of it must work or say why not.
void survive(const std::string& bytes) {
  const auto tokenizer = Tokenizer::parse(bytes, {}, "foreign");
  if (!tokenizer) {
    EXPECT_GT(tokenizer.error().message.size(), std::string("foreign: ").size());
    return;
  }
  const auto encoding = tokenizer->encode("Hello <|end|> é日🙂\n 12");
  if (encoding) (void)tokenizer->decode(encoding->ids);
}

void refuse(const std::string& bytes) {
  const auto tokenizer = Tokenizer::parse(bytes, {}, "foreign");
  ASSERT_FALSE(tokenizer) << bytes.substr(0, 200);
  EXPECT_NE(tokenizer.error().message.find("tokenizer.json"), std::string::npos)
      << tokenizer.error().message;
}

TEST(MalformedTokenizer, EveryTruncationIsRefused) {
  const auto whole = byte_level_json().dump();
  for (std::size_t size = 0; size < whole.size(); size += size < 64 ? 1 : 37) {
    refuse(whole.substr(0, size));
  }
  refuse(whole + "x");
}

TEST(MalformedTokenizer, WrongTypesAreRefused) {
  for (const std::string bytes : {"null", "[]", "3", "\"x\"", "{}", "{\"model\": 3}", "\xFF"}) {
    refuse(bytes);
  }
  for (const char* key : {"added_tokens", "normalizer", "pre_tokenizer", "post_processor",
                          "decoder", "model", "truncation", "padding", "version"}) {
    auto changed = byte_level_json();
    changed[key] = 7;
    refuse(changed.dump());
    changed[key] = {{"type", "Nonsense"}};
    refuse(changed.dump());
  }
}

TEST(MalformedTokenizer, BrokenVocabulariesAreRefusedOrHarmless) {
  auto changed = byte_level_json();
  changed["model"]["vocab"] = {{"a", "x"}};
  refuse(changed.dump());
  changed["model"]["vocab"] = {{"a", -1}};
  refuse(changed.dump());
  changed["model"]["vocab"] = {{"a", 5000000000}};
  refuse(changed.dump());
  changed = byte_level_json();
  changed["model"]["merges"] = json::array({"no such pieces"});
  refuse(changed.dump());
  changed["model"]["merges"] = json::array({"a"});
  refuse(changed.dump());
  changed = byte_level_json();
  changed["model"]["vocab"] = json::object();
  survive(changed.dump());
  changed = byte_level_json();
  changed["model"]["vocab"]["a"] = 4294967295u;  // the largest id there is
  survive(changed.dump());
  changed = byte_level_json();
  changed["added_tokens"][0]["content"] = "";
  survive(changed.dump());
}

TEST(MalformedTokenizer, DeepNestingIsRefused) {
  refuse(std::string(1 << 20, '['));
  std::string nested = R"({"type":"Digits","individual_digits":true})";
  for (int i = 0; i < 5000; ++i) {
    nested = R"({"type":"Sequence","pretokenizers":[)" + nested + "]}";
  }
  auto changed = byte_level_json();
  changed["pre_tokenizer"] = "HERE";
  auto text = changed.dump();
  text.replace(text.find("\"HERE\""), 6, nested);
  refuse(text);
}

TEST(MalformedTokenizer, HostileRegularExpressionsAreRefusedOrHarmless) {
  for (const std::string& pattern :
       {std::string("("), std::string("[z-a]"), std::string(200000, '('),
        std::string("a{99999999}"), std::string("(?<n>"), std::string("\\"),
        std::string("(?:a?){50000}")}) {
    auto changed = byte_level_json();
    changed["pre_tokenizer"] = {{"type", "Split"},
                                {"pattern", {{"Regex", pattern}}},
                                {"behavior", "Isolated"},
                                {"invert", false}};
    survive(changed.dump());
  }
}

TEST(MalformedTokenizer, HugeFileIsRefusedBeforeItIsRead) {
  TempFolder folder;
  folder.write("tokenizer.json", "{");
  std::filesystem::resize_file(folder.path() / "tokenizer.json", kTokenizerJson_bytes_max + 1);
  const auto tokenizer = Tokenizer::load(folder.path());
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code, core::ErrorCode::kData);
  EXPECT_NE(tokenizer.error().message.find("bytes; at most"), std::string::npos);
}

TEST(MalformedTokenizer, RandomDamageNeverEndsTheProcess) {
  const auto whole = byte_level_json().dump();
  std::uint64_t state = 1;
  const auto draw = [&state](std::size_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>((state >> 33) % bound);
  };
  const std::string letters = "{}[]\",:0-9e.ntf\\u\xFF ";
  for (int round = 0; round < 1500; ++round) {
    auto damaged = whole;
    for (std::size_t hits = 1 + draw(4); hits > 0; --hits) {
      // Half of the damage falls on the settings, which come before and after the vocabulary.
      const auto at = draw(2) == 0 ? draw(damaged.size()) : draw(900);
      if (draw(3) == 0) {
        damaged.erase(at, 1 + draw(20));
      } else {
        damaged[at] = letters[draw(letters.size())];
      }
    }
    survive(damaged);
  }
}

}  // namespace
}  // namespace troupe::text
