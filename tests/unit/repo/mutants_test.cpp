// The mistakes of tests/sim/mutants.tsv can be made: each row's text stands once in its file.
// Whether they are found takes a build for each (tests/sim/mutants.py).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

fs::path tree() {
  const char* folder = std::getenv("TROUPE_SOURCE_DIR");
  return folder != nullptr ? fs::path(folder) : fs::current_path();
}

std::string whole(const fs::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  for (const char c : line)
    c == '\t' ? fields.emplace_back() : fields.back() += c;
  return fields;
}

// "\n" of the table is an end of line.
std::string unescaped(std::string text) {
  for (auto at = text.find("\\n"); at != text.npos; at = text.find("\\n", at + 1))
    text.replace(at, 2, "\n");
  return text;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + part.size()))
    ++found;
  return found;
}

// The rows of the table, by field.
std::vector<std::vector<std::string>> mistakes() {
  std::istringstream table(whole(tree() / "tests/sim/mutants.tsv"));
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(table, line);)
    if (!line.empty() && !line.starts_with('#')) rows.push_back(fields_of(line));
  return rows;
}

}  // namespace

TEST(Mutants, EachMistakeCanBeMadeInOnePlace) {
  std::set<std::string> names;
  for (const std::vector<std::string>& fields : mistakes()) {
    ASSERT_TRUE(fields.size() >= 4 && fields.size() <= 6) << fields[0];
    const std::string &name = fields[0], &file = fields[1], &text = fields[2];
    EXPECT_TRUE(names.insert(name).second) << "twice: " << name;
    EXPECT_NE(text, fields[3]) << name;
    ASSERT_FALSE(text.empty()) << name;
    EXPECT_EQ(count(whole(tree() / file), unescaped(text)), 1u) << name << ": " << file;
    if (fields.size() > 4) {
      EXPECT_EQ(count(fields[4], " "), 1u) << name << ": a binary and its tests";
    }
  }
  EXPECT_GT(names.size(), 40u);
}

// The sixth field of a row is what the check says: the invariant and the event.
TEST(Mutants, EachMachineThatChecksItselfHasAMistakeThatItsCheckFinds) {
  std::set<std::string> checked, found;
  for (const char* rooms : {"actors", "runtime"}) {
    for (const auto& entry : fs::recursive_directory_iterator(tree() / rooms)) {
      const fs::path& file = entry.path();
      if (!entry.is_regular_file() || file.stem() == "checked_change") continue;
      if (whole(file).find("CheckedChange checked(*this)") != std::string::npos)
        checked.insert(file.stem().string());
    }
  }
  for (const std::vector<std::string>& fields : mistakes())
    if (fields.size() == 6 && fields[5].find("(after ") != std::string::npos)
      found.insert(fs::path(fields[1]).stem().string());
  EXPECT_GE(checked.size(), 5u);
  for (const std::string& machine : checked)
    EXPECT_TRUE(found.contains(machine)) << machine;
}
