// The pages that a stranger opens first: short, and true where they name files and functions.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace troupe {
namespace {

namespace fs = std::filesystem;

fs::path root_of_pages() {
  return std::getenv("TROUPE_SOURCE_DIR");
}

std::string page(const fs::path& path) {
  std::ifstream in(root_of_pages() / path);
  std::ostringstream text;
  text << in.rdbuf();
  EXPECT_TRUE(in) << path;
  return text.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

}  // namespace

TEST(FrontPages, TheReadmeIsReadInHalfAMinute) {
  const auto lines = lines_of(page("README.md"));
  EXPECT_LE(lines.size(), 60u);
  for (const std::string& line : lines) {
    if (line.starts_with("|")) continue;
    EXPECT_LE(line.size(), 120u) << line;
  }
}

TEST(FrontPages, LinksLeadToFiles) {
  const std::regex link(R"re(\]\(([^)#]+)(#[^)]*)?\))re");
  std::size_t links = 0;
  for (const fs::path name : {"README.md", "docs/README.md", "docs/one_update.md"}) {
    const std::string text = page(name);
    for (std::sregex_iterator it(text.begin(), text.end(), link), end; it != end; ++it, ++links) {
      const std::string target = (*it)[1];
      if (target.starts_with("http")) continue;
      EXPECT_TRUE(fs::exists(root_of_pages() / name.parent_path() / target))
          << name << ": " << target;
    }
  }
  EXPECT_GT(links, 50u);
}

// Every page of docs is in the list of pages.
TEST(FrontPages, TheListOfPagesHasEachPage) {
  const std::string list = page("docs/README.md");
  for (const auto& entry : fs::directory_iterator(root_of_pages() / "docs")) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".md" || name == "README.md") continue;
    EXPECT_NE(list.find("(" + name + ")"), std::string::npos) << name;
  }
}

TEST(FrontPages, TheTwelveFunctionsAreWhereItSays) {
  const std::regex row(R"re(^\| \d+ \| [a-z]+ \| `(\w+::)?(\w+)` \| `([^`]+)` \|)re");
  std::size_t rows = 0;
  for (const std::string& line : lines_of(page("docs/one_update.md"))) {
    std::smatch found;
    if (!std::regex_search(line, found, row)) continue;
    ++rows;
    EXPECT_NE(page(found[3].str()).find(found[1].str() + found[2].str() + "("), std::string::npos)
        << line;
  }
  EXPECT_EQ(rows, 12u);
}

}  // namespace troupe
