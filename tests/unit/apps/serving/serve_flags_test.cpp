// The flags of `troupe serve` stand in docs/serve.md as the program has them.
// TROUPE_WRITE_PAGES=1 test_serving --gtest_filter=ServeFlags.* writes the page's table.
#include "apps/cli/flags.hpp"
#include "apps/serving/serve_options.hpp"
#include "runtime/core/split.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <type_traits>
#include <variant>

namespace troupe::serving {
namespace {

std::string default_of(const cli::Flag& flag) {
  return std::visit(
      [](const auto* target) -> std::string {
        using Target = std::remove_cvref_t<decltype(*target)>;
        if constexpr (std::is_same_v<Target, std::string>) {
          return target->empty() ? "" : "`" + *target + "`";
        } else if constexpr (std::is_same_v<Target, std::int64_t>) {
          return std::to_string(*target);
        } else if constexpr (std::is_same_v<Target, double>) {
          char text[32];
          std::snprintf(text, sizeof text, "%g", *target);
          return text;
        } else {
          return "";
        }
      },
      flag.target);
}

// A row a flag: its names, its default (what its target holds now) and its help.
std::string flags_table(const std::vector<cli::Flag>& flags) {
  std::string table = "| flag | default | what |\n|---|---|---|\n";
  for (const cli::Flag& flag : flags) {
    std::string names;
    for (const std::string_view name : core::split(flag.name, ",")) {
      if (!name.starts_with("--")) continue;
      names += std::string(names.empty() ? "" : ", ") + "`" + std::string(name) + "`";
    }
    table += "| " + names + " | " + default_of(flag) + " | " + std::string(flag.help) + " |\n";
  }
  return table;
}

// `page` with the table in its place.
core::Result<std::string> with_flags_table(const std::string& page,
                                           const std::vector<cli::Flag>& flags) {
  const std::string begin = "<!-- flags -->\n", end = "<!-- end of flags -->\n";
  const auto from = page.find(begin), to = page.find(end);
  if (from == page.npos || to == page.npos || to < from)
    return core::fail(core::ErrorCode::kData, "the page has no place for flags");
  return page.substr(0, from + begin.size()) + flags_table(flags) + page.substr(to);
}

}  // namespace

TEST(ServeFlags, ThePageHasThem) {
  const std::string path = std::string(std::getenv("TROUPE_SOURCE_DIR")) + "/docs/serve.md";
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  ServeOptions options;
  const auto page = with_flags_table(text.str(), options.flags());
  ASSERT_TRUE(page) << page.error().message;
  if (std::getenv("TROUPE_WRITE_PAGES") != nullptr) std::ofstream(path) << *page;
  EXPECT_EQ(text.str(), *page) << "TROUPE_WRITE_PAGES=1 writes it";
}

TEST(FlagsPage, HasARowForEachFlag) {
  std::string name = "f32";
  std::int64_t port = 8000;
  bool insecure = false;
  std::vector<std::string> keys;
  EXPECT_EQ(flags_table({{"--dtype", &name, "how weights are stored"},
                         {"--port,-p", &port, "port to listen on; 0 takes a free one"},
                         {"--model,model", &keys, "a folder", true},
                         {"--insecure", &insecure, "no TLS"}}),
            "| flag | default | what |\n|---|---|---|\n"
            "| `--dtype` | `f32` | how weights are stored |\n"
            "| `--port` | 8000 | port to listen on; 0 takes a free one |\n"
            "| `--model` |  | a folder |\n"
            "| `--insecure` |  | no TLS |\n");
  EXPECT_FALSE(with_flags_table("a page", {}));
}

}  // namespace troupe::serving
