// Numbers of JSON as they are written: what is kept, what is read of them, what is written again.
#include "runtime/parse/written_numbers.hpp"

#include "runtime/parse/bounded_json.hpp"
#include "runtime/parse/limits.hpp"
#include "tests/unit/runtime/parse/number_spellings.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::parse {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

json read(const std::string& text, Numbers numbers) {
  auto value = bounded_json<json>(text, {.numbers = numbers});
  EXPECT_TRUE(value) << text;
  return value ? *value : json();
}

TEST(WrittenNumbers, EverySpellingComesBackByteForByte) {
  for (const std::string spelling : test::kNumberSpellings) {
    const std::string text =
        "{\"b\":[" + spelling + ",\"" + spelling + "\"],\"a\":{\"x\":" + spelling + "}}";
    EXPECT_EQ(written_text(*bounded_json<ordered_json>(text, {.numbers = Numbers::kAsWritten})),
              text);
    EXPECT_EQ(written_text(written_json<ordered_json>(text)), text);
    EXPECT_EQ(written_text(written_json<json>(spelling)), spelling);
  }
}

TEST(WrittenNumbers, AreTheNumbersThatTheyWere) {
  for (const std::string spelling : test::kNumberSpellings) {
    const double value = std::strtod(spelling.c_str(), nullptr);
    for (const Numbers numbers :
         {Numbers::kNearest, Numbers::kWholeIntegers, Numbers::kAsWritten}) {
      const json one = read(spelling, numbers);
      ASSERT_TRUE(number_in(one)) << spelling;
      EXPECT_EQ(*number_in(one), value) << spelling;
      EXPECT_EQ(with_nearest_numbers(json{{"a", {one}}})["a"][0].get<double>(), value) << spelling;
    }
  }
  for (const char* other : {"\"1\"", "null", "true", "[1]", "{}"})
    EXPECT_FALSE(number_in(read(other, Numbers::kAsWritten))) << other;
}

TEST(WrittenNumbers, TemplatesKeepWholeIntegersAlone) {
  const auto text = [](const char* spelling) {
    return written_text(read(spelling, Numbers::kWholeIntegers));
  };
  EXPECT_EQ(text("123456789012345678901234567890"), "123456789012345678901234567890");
  EXPECT_EQ(text("-9223372036854775809"), "-9223372036854775809");
  EXPECT_EQ(text("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(text("0.10"), "0.1");
  EXPECT_EQ(text("1e5"), "100000.0");
  EXPECT_TRUE(read("0.10", Numbers::kWholeIntegers).is_number());
  EXPECT_TRUE(read("0.5", Numbers::kAsWritten).is_number()) << "written as nlohmann writes it";
}

TEST(WrittenNumbers, WhatNoDoubleHoldsAndWhatIsTooLongIsRefused) {
  for (const Numbers numbers : {Numbers::kNearest, Numbers::kAsWritten})
    EXPECT_FALSE(bounded_json<json>("[1e400]", {.numbers = numbers}));
  const std::string longest(limits::kJsonNumber_bytes_max, '7');
  // Read as a double, it would be infinite.
  const std::string fraction = "0." + longest;
  const auto refused = bounded_json<json>(fraction, {.numbers = Numbers::kAsWritten});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "has a number of more than 4096 characters");
  EXPECT_TRUE(bounded_json<json>(fraction, {}));
}

TEST(WrittenNumbers, TextsThatAreNoJsonAreDiscarded) {
  EXPECT_TRUE(written_json<json>("{").is_discarded());
  EXPECT_EQ(written_text(json("a\xff")), "\"a\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace troupe::parse
