// Words of printed commands, read back by a shell.
#include "runtime/core/shell_word.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>

namespace troupe::core {
namespace {

std::string read_by_a_shell(const std::string& words) {
  const std::string command = "printf '%s|' " + words;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::array<char, 256> text{};
  return {text.data(), std::fread(text.data(), 1, text.size(), pipe.get())};
}

}  // namespace

TEST(ShellWord, PlainWordsStayAsTheyAre) {
  for (const char* word : {"/tmp/run-1/ckpt/step_000030", "127.0.0.1:8080", "a=b,c", "x@y%z+1"})
    EXPECT_EQ(shell_word(word), word);
}

TEST(ShellWord, OthersComeBackFromAShell) {
  for (const std::string word : {"", "my runs/first", "it's", "$HOME", "a;b", "*", "~/runs", "a\\b",
                                 "two\nlines", "\"quoted\"", "#1", "ä"})
    EXPECT_EQ(read_by_a_shell(shell_word(word)), word + "|");
}

}  // namespace troupe::core
