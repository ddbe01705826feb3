// The cache of a hub: where it is, what of it is used, and when something is downloaded.
#include "runtime/names/locate.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace troupe::names {
namespace {

namespace fs = std::filesystem;

const std::string kA(40, 'a'), kB(40, 'b');

class Cache : public testing::Test {
 protected:
  void SetUp() override {
    home_ = fs::path(testing::TempDir()) / ("names_" + std::to_string(::getpid()));
    fs::remove_all(home_);
    fs::create_directories(home_);
    for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME",
                             "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"})
      ::unsetenv(name);
    ::setenv("HF_HOME", home_.c_str(), 1);
    allow_fetching(nullptr);
  }
  void TearDown() override {
    allow_fetching(nullptr);
    ::unsetenv("HF_HOME");
    ::unsetenv("HF_HUB_OFFLINE");
    fs::remove_all(home_);
  }

  fs::path repository(Kind kind = Kind::kModel) {
    return home_ / "hub" / (kind == Kind::kModel ? "models--org--one" : "datasets--org--one");
  }
  void put(const fs::path& file, const std::string& text = "x") {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  fs::path snapshot(const std::string& commit, Kind kind = Kind::kModel) {
    return repository(kind) / "snapshots" / commit;
  }
  void whole(const std::string& commit) {
    put(snapshot(commit) / "config.json");
    put(snapshot(commit) / "model.safetensors");
  }
  void branch(const std::string& name, const std::string& commit, Kind kind = Kind::kModel) {
    put(repository(kind) / "refs" / name, commit);
  }
  Result<Found> model(const std::string& text = "org/one") {
    return locate(*hub_name(text, Kind::kModel));
  }
  Result<Found> rows(const std::string& text = "org/one") {
    return locate(*hub_name(text, Kind::kDataset));
  }

  fs::path home_;
};

TEST_F(Cache, IsWhereTheVariablesSay) {
  EXPECT_EQ(hub_cache(), home_ / "hub");
  ::setenv("HUGGINGFACE_HUB_CACHE", "/old", 1);
  EXPECT_EQ(hub_cache(), "/old");
  ::setenv("NAMES_TEST", "/v", 1);
  ::setenv("HF_HUB_CACHE", "$NAMES_TEST/a${NAMES_TEST}$NAMES_NONE/$", 1);
  EXPECT_EQ(hub_cache(), "/v/a/v$NAMES_NONE/$");
  ::setenv("HF_HUB_CACHE", "~/c", 1);
  EXPECT_EQ(hub_cache(), fs::path(std::getenv("HOME")) / "c");
  ::unsetenv("HF_HUB_CACHE");
  ::unsetenv("HUGGINGFACE_HUB_CACHE");
  ::unsetenv("HF_HOME");
  ::setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(hub_cache(), "/x/huggingface/hub");
  ::unsetenv("XDG_CACHE_HOME");
}

TEST_F(Cache, AModelIsThatOfItsRevision) {
  whole(kA);
  whole(kB);
  branch("main", kA);
  branch("refs/pr/1", kB);
  EXPECT_EQ(model()->folder, snapshot(kA));
  EXPECT_EQ(model()->commit, kA);
  EXPECT_EQ(model("org/one@refs/pr/1")->commit, kB);
  EXPECT_EQ(model("org/one@" + kB)->commit, kB);
  EXPECT_FALSE(model("org/one@v2"));  // the newest is no other revision
  EXPECT_EQ(*pinned("org/one", Kind::kModel), "org/one@" + kA);
  EXPECT_EQ(*pinned(home_.string(), Kind::kModel), home_.string());
}

TEST_F(Cache, WhatIsNotWholeOrNotCheckedIsPassedOver) {
  whole(kA);
  put(snapshot(kB) / "config.json");
  branch("main", kB);
  EXPECT_EQ(model()->commit, kA);  // B has no weights
  put(snapshot(kB) / "model.safetensors.index.json",
      R"({"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}})");
  put(snapshot(kB) / "model-00001-of-00002.safetensors");
  EXPECT_EQ(model()->commit, kA);  // B lacks a shard
  fs::create_symlink("../../blobs/none", snapshot(kB) / "model-00002-of-00002.safetensors");
  EXPECT_EQ(model()->commit, kA);  // or its file
  put(repository() / "blobs/none");
  EXPECT_EQ(model()->commit, kB);
  put(repository() / ".troupe" / (kB + ".unchecked"), "{}");
  EXPECT_EQ(model()->commit, kA);
  EXPECT_FALSE(model("org/one@" + kB));
  put(repository() / ".troupe" / (kA + ".unchecked"), "{}");
  EXPECT_FALSE(model());
}

TEST_F(Cache, AnAdapterIsWholeWithoutAConfiguration) {
  put(snapshot(kA) / "adapter_config.json");
  branch("main", kA);
  EXPECT_FALSE(model());
  put(snapshot(kA) / "adapter_model.safetensors");
  EXPECT_EQ(model()->commit, kA);
}

TEST_F(Cache, RowsAreThoseThatWereChosenWhenTheyCame) {
  const auto put_record = [&](const std::string& name, const std::string& text) {
    put(repository(Kind::kDataset) / ".troupe" / (kA + "." + name + ".json"), text);
  };
  branch("main", kA, Kind::kDataset);
  put(snapshot(kA, Kind::kDataset) / "data/b.jsonl");
  put(snapshot(kA, Kind::kDataset) / "data/a.jsonl");
  EXPECT_FALSE(rows());
  put_record(",", R"({"files": ["data/b.jsonl", "data/a.jsonl"]})");
  put_record("main,test", R"({"files": ["data/a.jsonl"]})");
  const fs::path folder = snapshot(kA, Kind::kDataset);
  EXPECT_EQ(rows()->files, (std::vector{folder / "data/b.jsonl", folder / "data/a.jsonl"}));
  EXPECT_EQ(rows("org/one:main:test")->files, std::vector{folder / "data/a.jsonl"});
  EXPECT_FALSE(rows("org/one:main"));
  EXPECT_EQ(*row_files("org/one:main:test"), std::vector{folder / "data/a.jsonl"});
  EXPECT_EQ(*row_files("org/rows.jsonl"), std::vector{fs::path("org/rows.jsonl")});
  for (const char* bad :
       {"", "[]", "{}", R"({"files": 7})", R"({"files": []})", R"({"files": ["/etc/passwd"]})",
        R"({"files": ["../../../x"]})", R"({"files": ["data/none.jsonl"]})", R"({"files": [7]})"}) {
    put_record(",", bad);
    EXPECT_FALSE(rows()) << bad;
  }
}

TEST_F(Cache, OnlyWhatIsMissingIsDownloaded) {
  std::vector<std::string> asked;
  allow_fetching([&](const HubName& name) -> Result<Found> {
    asked.push_back(name.text());
    return Found{kB, "/fetched", {}};
  });
  EXPECT_EQ(model("org/one@v1")->folder, "/fetched");
  EXPECT_EQ(asked, std::vector<std::string>{"org/one@v1"});
  whole(kA);
  EXPECT_EQ(model()->commit, kA);
  EXPECT_EQ(asked.size(), 1u);
  ::setenv("HF_HUB_OFFLINE", "1", 1);
  const auto refused = model("org/one@v1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kNotFound);
  EXPECT_NE(refused.error().message.find("HF_HUB_OFFLINE is set"), std::string::npos);
  EXPECT_EQ(asked.size(), 1u);
}

TEST_F(Cache, WithoutADownloadTheErrorNamesTheCommand) {
  const auto refused = model("org/two@v1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kNotFound);
  EXPECT_NE(refused.error().advice().find("`troupe get org/two@v1`"), std::string::npos);
  EXPECT_NE(rows("org/two:main").error().advice().find("`troupe get org/two:main --dataset`"),
            std::string::npos);
}

TEST_F(Cache, APathIsNoName) {
  const fs::path before = fs::current_path();
  fs::current_path(home_);
  fs::create_directories("runs/mine");
  EXPECT_FALSE(means_hub("runs/mine", Kind::kModel));
  EXPECT_FALSE(means_hub("runs/other", Kind::kModel));  // beside it: a misspelt path
  EXPECT_TRUE(means_hub("org/one", Kind::kModel));
  fs::create_directories("org");
  EXPECT_FALSE(means_hub("org/one", Kind::kModel));
  whole(kA);  // unless the cache has it
  EXPECT_TRUE(means_hub("org/one", Kind::kModel));
  fs::current_path(before);
}

}  // namespace
}  // namespace troupe::names
