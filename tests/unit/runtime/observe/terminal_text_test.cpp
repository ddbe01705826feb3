// Hostile text must not reach a terminal.
#include "runtime/observe/terminal_text.hpp"

#include <gtest/gtest.h>

namespace {

using troupe::observe::terminal_line;
using troupe::observe::terminal_safe;

TEST(TerminalText, KeepsOrdinaryText) {
  EXPECT_EQ(terminal_safe("a\tb\nc é 漢 🎉"), "a\tb\nc é 漢 🎉");
}

TEST(TerminalText, TakesOutControlSequences) {
  EXPECT_EQ(terminal_safe("\x1b[2Jx\x1b]0;title\x07y"), "[2Jx]0;titley");
  EXPECT_EQ(terminal_safe("a\rb\bc\x7f"), "abc");
  EXPECT_EQ(terminal_safe("a\xC2\x9B"
                          "31mb"),
            "a31mb")
      << "C1 CSI as UTF-8";
  EXPECT_EQ(terminal_safe(std::string("a\0b", 3)), "ab");
}

TEST(TerminalText, TakesOutBidirectionalOverrides) {
  EXPECT_EQ(terminal_safe("a\xE2\x80\xAE"
                          "b\xE2\x81\xA6"
                          "c"),
            "abc");
}

TEST(TerminalText, RepairsBrokenUtf8) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(terminal_safe("a\xFFz"), "a" + r + "z");
  EXPECT_EQ(terminal_safe("\x9B"
                          "31m"),
            r + "31m")
      << "a raw C1 byte";
  EXPECT_EQ(terminal_safe("\xC0\x9B"), r + r) << "overlong";
  EXPECT_EQ(terminal_safe("\xED\xA0\x80"), r + r + r) << "surrogate";
  EXPECT_EQ(terminal_safe("\xE2\x82"), r + r) << "cut short";
}

TEST(TerminalText, NoControlByteSurvivesAnyTwoBytes) {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const char two[] = {static_cast<char>(a), static_cast<char>(b)};
      const std::string safe = terminal_safe(std::string_view(two, 2));
      for (const char c : safe) {
        const auto byte = static_cast<unsigned char>(c);
        ASSERT_TRUE(byte == '\n' || byte == '\t' || (byte >= 0x20 && byte != 0x7F))
            << a << " " << b;
      }
    }
  }
}

TEST(TerminalText, LineIsCutAtCharacters) {
  EXPECT_EQ(terminal_line("a\nb\tc", 80), "a b c");
  EXPECT_EQ(terminal_line("éééé", 2), "éé");
  EXPECT_EQ(terminal_line("abc", 3), "abc");
}

}  // namespace
