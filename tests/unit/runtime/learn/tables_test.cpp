// What holds for every row of the tables of choices: its words, its documentation, and the facts
// that belong together.
#include "runtime/learn/settings.hpp"
#include "runtime/learn/supervised/methods.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace troupe::learn {
namespace {

std::string algorithms_page() {
  const char* root = std::getenv("TROUPE_SOURCE_DIR");
  std::ifstream in(std::string(root == nullptr ? "." : root) + "/docs/algorithms.md");
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Names of the first cells of the page's tables.
std::set<std::string> documented() {
  std::set<std::string> names;
  std::istringstream page(algorithms_page());
  for (std::string line; std::getline(page, line);) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos || line.compare(begin, 3, "| `") != 0) continue;
    const std::string cell = line.substr(begin + 1, line.find('|', begin + 1) - begin - 1);
    for (std::size_t at = cell.find('`'); at != std::string::npos; at = cell.find('`', at)) {
      const std::size_t end = cell.find('`', at + 1);
      names.insert(cell.substr(at + 1, end - at - 1));
      at = end + 1;
    }
  }
  return names;
}

template <class Row>
void expect_documented(bool in_a_table) {
  const std::string page = algorithms_page();
  ASSERT_FALSE(page.empty()) << "docs/algorithms.md; is TROUPE_SOURCE_DIR set?";
  const std::set<std::string> names = documented();
  for (const Row& row : Row::all()) {
    const std::string name(row.name);
    if (name == "none") continue;
    if (in_a_table) {
      EXPECT_TRUE(names.contains(name)) << "docs/algorithms.md has no row of " << name;
    } else {
      EXPECT_NE(page.find("`" + name + "`"), std::string::npos) << name;
    }
  }
}

}  // namespace

TEST(Tables, EveryWordIsUniqueAndHasItsLine) {
  for (const core::ChoiceTable& table : choice_tables()) {
    std::set<std::string_view> words;
    EXPECT_FALSE(table.choices.empty()) << table.key;
    for (const core::Choice& choice : table.choices) {
      EXPECT_TRUE(words.insert(choice.name).second) << choice.name;
      EXPECT_TRUE(choice.alias.empty() || words.insert(choice.alias).second) << choice.alias;
      EXPECT_FALSE(choice.help.empty()) << table.key << ": " << choice.name;
      EXPECT_LE(choice.help.size(), 90u) << choice.name;
    }
  }
}

TEST(Tables, EveryRowIsDocumented) {
  expect_documented<Objective>(true);
  expect_documented<Estimator>(true);
  expect_documented<Correction>(true);
  expect_documented<Method>(true);
  expect_documented<PairLoss>(true);
  expect_documented<Credit>(true);
  expect_documented<Reducer>(false);
  expect_documented<KlEstimator>(false);
  expect_documented<ClipOrder>(false);
  for (const Method& method : Method::all()) {
    EXPECT_FALSE(method.title.empty()) << method.name;
    EXPECT_TRUE(method.page.ends_with('\n')) << method.name;
  }
}

TEST(Tables, ARowIsFoundByNameAndAlias) {
  EXPECT_EQ(Chosen<Estimator>("grpo"), Chosen<Estimator>("group_norm"));
  EXPECT_EQ(Chosen<Estimator>("reinforce_pp")->name, "reinforce");
  EXPECT_EQ(Chosen<Correction>("seq-mask-tis")->name, "geo_rs");
  for (const Objective& objective : Objective::all())
    EXPECT_EQ(&*Chosen<Objective>(objective.name), &objective);
  EXPECT_DEATH(Chosen<Objective>("pro"), "a word that is in no row");
  EXPECT_DEATH(Chosen<Objective>(""), "a word that is in no row");
}

TEST(Tables, ObjectivesHaveTheFactsThatTheirKindNeeds) {
  for (const Objective& objective : Objective::all()) {
    SCOPED_TRACE(objective.name);
    if (!objective.reducer.empty()) {
      EXPECT_NE(Chosen<Reducer>(objective.reducer)->weight, nullptr);
    }
    EXPECT_FALSE(objective.pairs && objective.clips);
    EXPECT_TRUE(!objective.sample_ratio || objective.clips);
    EXPECT_TRUE(objective.bound == nullptr || objective.weigh != nullptr);
    EXPECT_EQ(objective.formula, nullptr) << "facts are known without LibTorch, formulas are not";
  }
}

TEST(Tables, DefaultSettingsAndEveryRowAloneAreAccepted) {
  EXPECT_FALSE(refusal(AlgoSettings{}).has_value());
  for (const Objective& objective : Objective::all()) {
    AlgoSettings algo;
    algo.objective = objective;
    if (!objective.reducer.empty()) algo.reducer = objective.reducer;
    EXPECT_FALSE(refusal(algo).has_value()) << objective.name;
  }
  for (const Correction& correction : Correction::all()) {
    AlgoSettings algo;
    algo.objective = "ppo";
    algo.correction.type = correction;
    EXPECT_FALSE(refusal(algo).has_value()) << correction.name;
  }
}

}  // namespace troupe::learn
