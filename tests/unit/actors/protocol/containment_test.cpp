// The page that tells users what an error does, compared with the code that does it.
#include "actors/protocol/containment.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace troupe::actors {
namespace {

using core::ErrorCode;

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, '|');) {
    const auto first = cell.find_first_not_of(' ');
    if (first == cell.npos) continue;
    cells.push_back(cell.substr(first, cell.find_last_not_of(' ') - first + 1));
  }
  return cells;
}

// The rows of the page's table, without its two head lines.
std::vector<std::vector<std::string>> table_of_page() {
  const char* const root = std::getenv("TROUPE_SOURCE_DIR");
  std::ifstream page(std::filesystem::path(root != nullptr ? root : ".") / "docs/operations.md");
  std::vector<std::vector<std::string>> rows;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) inside = line == "## What an error of a role does";
    if (inside && line.starts_with("| ")) rows.push_back(cells_of(line));
  }
  if (!rows.empty()) rows.erase(rows.begin());
  return rows;
}

TEST(Containment, TheTableOfThePageIsTheCode) {
  const auto rows = table_of_page();
  ASSERT_EQ(rows.size(), static_cast<std::size_t>(core::kErrorCodes));
  for (int code = 0; code < core::kErrorCodes; ++code) {
    const auto error = static_cast<ErrorCode>(code);
    std::vector<std::string> wanted = {std::string(core::error_name(error))};
    for (const AskedFor asked : {AskedFor::kSamples, AskedFor::kWeights, AskedFor::kScores,
                                 AskedFor::kUpdate, AskedFor::kFiles}) {
      wanted.emplace_back(kReactions[static_cast<std::size_t>(reaction_to(asked, error))]);
    }
    EXPECT_EQ(rows[static_cast<std::size_t>(code)], wanted);
  }
}

TEST(Containment, NoErrorOfAGeneratorOrAScorerEndsARun) {
  for (int code = 0; code < core::kErrorCodes; ++code) {
    for (const AskedFor asked : {AskedFor::kSamples, AskedFor::kWeights, AskedFor::kScores})
      EXPECT_NE(reaction_to(asked, static_cast<ErrorCode>(code)), Reaction::kEnded);
  }
  EXPECT_EQ(reaction_to(AskedFor::kUpdate, ErrorCode::kNumeric), Reaction::kEnded);
}

}  // namespace
}  // namespace troupe::actors
