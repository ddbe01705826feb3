// Names of a hub: which texts are names, and their parts.
#include "runtime/names/hub_name.hpp"

#include <gtest/gtest.h>

namespace troupe::names {
namespace {

const std::string kCommit = "0123456789abcdef0123456789abcdef01234567";

TEST(HubNames, ModelsHaveOwnerNameAndRevision) {
  const auto plain = hub_name("Qwen/Qwen3-0.6B", Kind::kModel);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->repository, "Qwen/Qwen3-0.6B");
  EXPECT_EQ(plain->revision, "");
  EXPECT_FALSE(plain->pinned());
  const auto branch = hub_name("org/model@refs/pr/7", Kind::kModel);
  ASSERT_TRUE(branch);
  EXPECT_EQ(branch->repository, "org/model");
  EXPECT_EQ(branch->revision, "refs/pr/7");
  EXPECT_EQ(branch->text(), "org/model@refs/pr/7");
  const auto commit = hub_name("org/model@" + kCommit, Kind::kModel);
  ASSERT_TRUE(commit);
  EXPECT_TRUE(commit->pinned());
  EXPECT_EQ(plain->at(kCommit).text(), "Qwen/Qwen3-0.6B@" + kCommit);
}

TEST(HubNames, DataSetsHaveAConfigurationAndASplit) {
  struct Case {
    std::string text, revision, first, second;
  };
  for (const Case& one : {Case{"org/rows", "", "", ""},
                          {"org/rows:main", "", "main", ""},
                          {"org/rows:main:test", "", "main", "test"},
                          {"org/rows::test", "", "", "test"},
                          {"org/rows@v1.0:20231101.en:train", "v1.0", "20231101.en", "train"}}) {
    const auto name = hub_name(one.text, Kind::kDataset);
    ASSERT_TRUE(name) << one.text;
    EXPECT_EQ(name->repository, "org/rows");
    EXPECT_EQ(name->revision, one.revision) << one.text;
    EXPECT_EQ(name->first, one.first) << one.text;
    EXPECT_EQ(name->second, one.second) << one.text;
    EXPECT_EQ(name->text(), one.text);
  }
}

TEST(HubNames, OthersArePaths) {
  for (const std::string text : {"",
                                 "/",
                                 "model",
                                 "/org/model",
                                 "./org",
                                 "../model",
                                 "~/model",
                                 "org/",
                                 "/model",
                                 "a/b/c",
                                 "org/mo del",
                                 "org/..",
                                 "../..",
                                 ".org/model",
                                 "org/model@",
                                 "org/model@../x",
                                 "org/model@/x",
                                 "org/a--b",
                                 "org/model:x",
                                 "org/model.safetensors",
                                 "-org/model",
                                 "org/model@a//b",
                                 "org/mod\nel"})
    EXPECT_FALSE(hub_name(text, Kind::kModel)) << text;
  for (const std::string text :
       {"data/train.jsonl", "data/rows.csv", "a/b.parquet", "a/b.json", "a/b.jsonl.gz",
        "org/rows:", "org/rows::", "org/rows:a:b:c", "org/rows:a/b", "rows.jsonl"})
    EXPECT_FALSE(hub_name(text, Kind::kDataset)) << text;
}

TEST(HubNames, ACommitIsFortyDigits) {
  EXPECT_TRUE(is_commit(kCommit));
  EXPECT_FALSE(is_commit(kCommit.substr(1)));
  EXPECT_FALSE(is_commit(kCommit + "0"));
  EXPECT_FALSE(is_commit("G" + kCommit.substr(1)));
}

}  // namespace
}  // namespace troupe::names
