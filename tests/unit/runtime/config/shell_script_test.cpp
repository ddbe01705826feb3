// What is read of a shell script that nobody runs.
#include "runtime/config/shell_script.hpp"

#include "runtime/config/shell_sum.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace troupe::config {
namespace {

std::optional<std::string> no_environment(std::string_view name) {
  return name == "HOME" ? std::optional<std::string>("/home/me") : std::nullopt;
}

// The commands, their words between bars; what is unknown stands behind a question mark.
std::string commands_of(std::string_view text) {
  const auto read = read_script(text, "run.sh", no_environment);
  if (!read) return read.error().message;
  std::string out;
  for (const ShellCommand& command : *read) {
    if (!out.empty()) out += '\n';
    for (std::size_t i = 0; i < command.size(); ++i) {
      out += (i > 0 ? "|" : "") + command[i].text;
      if (!command[i].unknown.empty()) out += "?" + command[i].unknown;
    }
  }
  return out;
}

TEST(ShellScript, WordsQuotesAndLines) {
  EXPECT_EQ(commands_of("a b  'c d' \"e 'f'\" g\\ h i'j'\"k\"\n"), "a|b|c d|e 'f'|g h|ijk");
  EXPECT_EQ(commands_of("a \\\n  b \\\r\n c # d\ne#f ''\n"), "a|b|c\ne#f|");
  EXPECT_EQ(commands_of("a; b && c | d > log 2>&1 &\n"), "a\nb\nc\nd");
  EXPECT_EQ(commands_of("a \"x\\\"y\\z\\$\" '\\'\n"), "a|x\"y\\z$|\\");
  const auto read = read_script("\n\na \\\n b\n", "run.sh", no_environment);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->at(0).at(0).line, 3);
  EXPECT_EQ(read->at(0).at(1).line, 4);
}

TEST(ShellScript, VariablesThatItSets) {
  EXPECT_EQ(commands_of("M=qwen\nexport N=2 O='a b'\nrun $M ${M}-$N \"$O\" $HOME/x\n"),
            "run|qwen|qwen-2|a b|/home/me/x");
  EXPECT_EQ(commands_of("A=${1:-small} B=${HOME:-/x} C=${NO:-${ALSO:-deep}}\nrun $A $B $C\n"),
            "run|small|/home/me|deep");
  EXPECT_EQ(commands_of("X=1 run $X\n"), "run|$X?$X") << "it is set for the command alone";
  EXPECT_EQ(commands_of("run $GONE $(nproc) `date` $@ ${A:0:2}\n"),
            "run|$GONE?$GONE|$(nproc)?$(nproc)|`date`?`date`|$@?$@|${A:0:2}?${A:0:2}");
  EXPECT_EQ(commands_of("if [ -d x ]; then\n  M=a\nelse\n  M=b\nfi\nrun $M\n"),
            "[|-d|x|]\nrun|b?$M, which is set under a condition");
}

TEST(ShellScript, ArraysBecomeWords) {
  EXPECT_EQ(commands_of("DATA=(\n  a=1 # one\n  b=\"2 3\"\n)\nrun \"${DATA[@]}\" end\n"),
            "run|a=1|b=2 3|end");
  EXPECT_EQ(commands_of("NONE=()\nrun \"${NONE[@]}\" end\n"), "run|end");
  const auto read = read_script("D=(\n x\n y\n)\nrun ${D[@]}\n", "run.sh", no_environment);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->at(0).at(2).line, 3) << "where it is written";
}

TEST(ShellScript, SumsAreComputed) {
  EXPECT_EQ(commands_of("L=$((1024 * 2))\nrun $L $((L + 4 * (3 - 1))) $(($L/3)) $((${L} % 3))\n"),
            "run|2048|2056|682|2");
  EXPECT_EQ(commands_of("run $((1 / 0)) $((X + 1))\n"),
            "run|$((1 / 0))?$((1 / 0))|$((X + 1))?$((X + 1))");
  const auto none = [](std::string_view) { return std::nullopt; };
  EXPECT_EQ(shell_sum("-(2 + -3) * 4", none), 4);
  EXPECT_EQ(shell_sum("9223372036854775807 + 1", none), std::nullopt);
  EXPECT_EQ(shell_sum("-9223372036854775807 / -1", none), 9223372036854775807);
  for (const char* bad : {"", "1 +", "(1", "1)", "1 2", "a", "0x", "1 ** 2"})
    EXPECT_EQ(shell_sum(bad, none), std::nullopt) << bad;
}

TEST(ShellScript, HereDocumentsAreScriptsIfTheyReadAsOne) {
  EXPECT_EQ(commands_of("read -r -d '' C <<EOF\nrun --a 1 \\\n  --b 2\nEOF\nend $C\n"),
            "read|-r|-d||C\nrun|--a|1|--b|2\nend|$C?$C");
  EXPECT_EQ(commands_of("cat <<'EOF' > f\nit's no script\nEOF\nend\n"), "cat\nend");
  EXPECT_EQ(commands_of("cat <<-X\n\ta\n\tX\nend\n"), "cat\na\nend");
}

TEST(ShellScript, WhatIsNoneSaysWhere) {
  EXPECT_EQ(commands_of("a\nb 'c\n"), "run.sh:2: a ' has no end");
  EXPECT_EQ(commands_of("a\n\"b\n\n"), "run.sh:2: a \" has no end");
  EXPECT_EQ(commands_of("a $(b\n"), "run.sh:1: a $( has no end");
  EXPECT_EQ(commands_of("a ${b\n"), "run.sh:1: a ${ has no end");
  EXPECT_EQ(commands_of("a `b\n"), "run.sh:1: a ` has no end");
  EXPECT_EQ(commands_of("\nA=(b\n"), "run.sh:2: a ( has no ) after it");
  EXPECT_EQ(commands_of(std::string_view("a\0b", 3)),
            "run.sh: is no text; a shell script is expected");
  EXPECT_EQ(commands_of(std::string((4u << 20) + 1, 'a')).substr(0, 31),
            "run.sh: too large for a script ");
}

}  // namespace
}  // namespace troupe::config
