// Hashes of what a run depends on: they travel unchanged, and differ by name.
#include "apps/session/roles/contents.hpp"

#include <gtest/gtest.h>

namespace troupe::session {
namespace {

const Hashes kThen = {{"data.prompt_dataset", std::string(64, 'a')},
                      {"reward.python", std::string(64, 'b')},
                      {"the weights of actor.model_name_or_path", std::string(64, 'c')}};

}  // namespace

TEST(Contents, TravelInManifestsAndInSettings) {
  EXPECT_EQ(hashes_of_json(hashes_json(kThen)), kThen);
  EXPECT_TRUE(hashes_of_json("{}").empty()) << "a checkpoint of an older program";
  EXPECT_TRUE(hashes_of_json("no json").empty());
  EXPECT_TRUE(hashes_of_json(R"({"sha256": {"a": 1}})").empty());
  const std::string in_class = hashes_json(kThen, "f32/v1/0");
  EXPECT_EQ(hashes_of_json(in_class), kThen);
  EXPECT_EQ(arithmetic_of_json(in_class), "f32/v1/0");
  for (const char* none : {"{}", "no json", R"({"arithmetic": 7})"})
    EXPECT_EQ(arithmetic_of_json(none), "") << none;
  Settings settings = settings_of(kThen);
  settings.emplace_back("updates", "10");
  EXPECT_EQ(hashes_of_settings(settings), kThen);
}

TEST(Contents, DifferWhereBothSidesKnowThem) {
  const std::vector<Content> contents = {{"data.prompt_dataset", {}, "d.jsonl"},
                                         {"reward.python", {}, "r.py", true},
                                         {"the weights of actor.model_name_or_path", {}, "m"},
                                         {"the tokenizer of actor.model_name_or_path", {}, "m"}};
  Hashes now = kThen;
  EXPECT_TRUE(differences(contents, kThen, now).empty());
  now["data.prompt_dataset"] = std::string(64, 'd');
  now["reward.python"] = std::string(64, 'e');
  now["the tokenizer of actor.model_name_or_path"] = std::string(64, 'f');
  const auto found = differences(contents, kThen, now);
  ASSERT_EQ(found.size(), 2u) << "nobody had hashed a tokenizer then";
  EXPECT_EQ(found[0].name, "data.prompt_dataset");
  EXPECT_EQ(found[0].place, "d.jsonl");
  EXPECT_EQ(found[0].theirs, std::string(12, 'a'));
  EXPECT_EQ(found[0].ours, std::string(12, 'd'));
  EXPECT_FALSE(found[0].only_warns);
  EXPECT_TRUE(found[1].only_warns);
}

}  // namespace troupe::session
