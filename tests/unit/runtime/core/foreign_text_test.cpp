#include "runtime/core/foreign_text.hpp"

#include <gtest/gtest.h>

namespace troupe::core {
namespace {

TEST(ForeignText, AQuoteIsOneBoundedLine) {
  EXPECT_EQ(quoted("a\nerror: b\x1b[31m", 100), "\"a error: b [31m\"");
  EXPECT_EQ(quoted("abcdef", 3), "\"abc...\"");
  EXPECT_EQ(quoted("ab\xC3\xA9", 3), "\"ab...\"");  // no half of a character
  EXPECT_EQ(quoted("", 3), "\"\"");
}

TEST(ForeignText, EachLineStandsBehindABar) {
  EXPECT_EQ("it said:" + quoted_lines("one\nerror: two; do it\n\n"),
            "it said:\n  | one\n  | error: two; do it");
  EXPECT_EQ(quoted_lines("\n \n"), "");
}

TEST(ForeignText, OfMuchTextTheEndStaysAndTheException) {
  std::string many;
  for (int i = 0; i < 1000; ++i)
    many += "line " + std::to_string(i) + "\n";
  const std::string end = quoted_lines(many);
  EXPECT_LT(end.size(), 2500u);
  EXPECT_TRUE(end.starts_with("\n  |   ...\n  | line "));
  EXPECT_TRUE(end.ends_with("\n  | line 999"));

  const std::string trace =
      "Traceback (most recent call last):\n  File \"e.py\", line 3, in step\n"
      "RuntimeError: stock file missing\n";
  const std::string kept = quoted_lines(trace + many);
  EXPECT_TRUE(
      kept.starts_with("\n  | Traceback (most recent call last):\n  |   ...\n  | RuntimeError: "
                       "stock file missing\n  | line 0"));
  EXPECT_TRUE(kept.ends_with("\n  |   ..."));
  EXPECT_EQ(gist_of("it raised:" + kept), "it raised: RuntimeError: stock file missing");
}

TEST(ForeignText, TheGistIsTheExceptionOfTheLastTraceback) {
  const std::string first =
      "Traceback (most recent call last):\n  File \"r.py\", line 1\nKeyError: 'x'";
  const std::string second =
      "\n\nDuring handling of the above exception, another exception occurred:\n\n"
      "Traceback (most recent call last):\n  File \"r.py\", line 2\n"
      "    raise ValueError(\"a\\nerror: forged\")\nValueError: a\nerror: forged";
  EXPECT_EQ(gist_of("reward r raised:" + quoted_lines(first)), "reward r raised: KeyError: 'x'");
  EXPECT_EQ(gist_of("reward r raised; 3 tries:" + quoted_lines(first + second)),
            "reward r raised; 3 tries: ValueError: a");
  EXPECT_EQ(gist_of("it ended:" + quoted_lines("npm starts\nno such module")),
            "it ended: no such module");
  EXPECT_EQ(gist_of("a:" + quoted_lines("b") + "\nc"), "a: b\nc");
  for (const std::string plain : {"", "no score", "Traceback (most recent call last):"})
    EXPECT_EQ(gist_of(plain), plain);
}

TEST(ForeignText, OneLineStaysOnTheLineAndNoLineIsOurs) {
  EXPECT_EQ("it said:" + foreign("no\x1b such file\n"), "it said: no  such file");
  EXPECT_EQ("it said:" + foreign("a\nb"), "it said:\n  | a\n  | b");
  EXPECT_EQ(barred("a\nerror: b\n  | c"), "a\n  | error: b\n  | c");
}

TEST(ForeignText, FactsGoInFrontOfIt) {
  EXPECT_EQ(with_fact("it raised:" + quoted_lines("x"), "3 tries"), "it raised; 3 tries:\n  | x");
  EXPECT_EQ(with_fact("it raised", "3 tries"), "it raised; 3 tries");
}

}  // namespace
}  // namespace troupe::core
