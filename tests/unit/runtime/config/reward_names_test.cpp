// Names that no reward may have, in every place where one gets its name.
#include "runtime/config/reward_names.hpp"

#include "runtime/config/builder.hpp"

#include <gtest/gtest.h>

#include <set>

namespace troupe::config {
namespace {

std::set<std::string> own_words() {
  std::set<std::string> words(kRewardFigures.begin(), kRewardFigures.end());
  words.insert("rest");
  return words;
}

TEST(RewardNames, OwnWordsAreRefusedAndOthersAreNot) {
  for (const std::string& word : own_words()) {
    EXPECT_NE(own_word_fault(word), "") << word;
    EXPECT_NE(attached_name_fault(word), "") << word;
    EXPECT_EQ(own_word_fault(word + "-2"), "") << word;
    EXPECT_EQ(attached_name_fault("my-" + word), "") << word;
  }
  EXPECT_NE(own_word_fault("extra/tokens"), "") << "reward/extra/... is what rewards report";
  EXPECT_NE(own_word_fault("mean").find("reward/mean"), std::string::npos);
  EXPECT_EQ(own_word_fault("Mean"), "");
}

TEST(RewardNames, AnAttachedOneAlsoNamesARoleAndAFile) {
  for (const std::string name : {"", "0", "17", ".", "..", "a/b", "a b", "<b>x", "a\x1b[31m",
                                 "eval-math-exact", "caf\xc3\xa9"}) {
    EXPECT_NE(attached_name_fault(name), "") << name;
  }
  EXPECT_NE(attached_name_fault(std::string(65, 'a')), "");
  for (const std::string& name :
       {std::string("a"), std::string("rm-1.5_b"), std::string("2nd"), std::string(64, 'a')})
    EXPECT_EQ(attached_name_fault(name), "") << name;
}

// The name of a Python reward is its file's, that of a model its folder's.
TEST(RewardNames, NoFileOrFolderGivesAnOwnWord) {
  for (const std::string& word : own_words()) {
    for (const auto& [key, value] :
         {std::pair{"reward.python", "rewards/" + word + ".py"},
          {"reward.model_name_or_path", "models/" + word},
          {"reward.model_name_or_path", "models/good,models/" + word + "/"},
          {"reward.process.model_name_or_path", "models/" + word}}) {
      Builder builder(keys());
      for (const auto& [name, usual] : {std::pair{"actor.model_name_or_path", "m"},
                                        {"data.prompt_dataset", "p.jsonl"},
                                        {"data.label_key", "answer"}}) {
        ASSERT_TRUE(builder.set({name, {usual}, false, "the command line"}));
      }
      ASSERT_TRUE(builder.set({key, {value}, false, "the command line"})) << key;
      const auto done = builder.finish();
      ASSERT_FALSE(done) << key << " " << value;
      EXPECT_EQ(done.error().code, core::ErrorCode::kConfig);
      EXPECT_NE(done.error().message.find(key), std::string::npos) << done.error().message;
      EXPECT_NE(done.error().message.find("'" + word + "'"), std::string::npos)
          << done.error().message;
      EXPECT_FALSE(done.error().advice().empty()) << done.error().message;
    }
  }
}

TEST(RewardNames, FilesAndFoldersGiveThem) {
  EXPECT_EQ(name_of_file("rewards/mean.py"), "mean");
  EXPECT_EQ(name_of_folder("/models/rm-small"), "rm-small");
  EXPECT_EQ(name_of_folder("/models/rm-small/"), "rm-small");
}

}  // namespace
}  // namespace troupe::config
