// What ${...} becomes: texts, lists, outputs of stages, figures.
#include "apps/pipeline/scope.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace troupe::pipeline {
namespace {

namespace fs = std::filesystem;

class References : public ::testing::Test {
 protected:
  References()
      : folder_(fs::temp_directory_path() / ("pipeline_refs_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_ / "sft/run/ckpt/step_000002/model");
    fs::create_directories(folder_ / "sft/run/ckpt/step_000010/model");
    fs::create_directories(folder_ / "sft/run/ckpt/step_000012");  // without a model
    outer_.set("lr", std::string("1e-5"));
    outer_.set("seeds", Value{{"1", "2"}, true});
    auto turn = std::make_shared<StageTurn>();
    Stage stage;
    stage.command = {"train", "sft"};
    turn->command = stage_command(stage);
    turn->folder = folder_ / "sft";
    turn->record.state = "finished";
    turn->record.cpu_s = 12.5;
    turn->record.steps = 10;
    turn->record.figures["eval/pass@1"] = {0.5, 0.25, 0.75};
    outer_.set("sft", std::shared_ptr<const StageTurn>(turn));
    auto later = std::make_shared<StageTurn>(*turn);
    later->folder = folder_ / "dpo";
    later->record = {};
    outer_.set("dpo", std::shared_ptr<const StageTurn>(later));
    outer_.set_search("grid", {{"beta", Value{{"0.3"}, false}}});
  }
  ~References() override { fs::remove_all(folder_); }

  std::string filled(const std::string& text) {
    const auto out = fill(text, inner_.lookup());
    return out ? *out : out.error().message;
  }

  fs::path folder_;
  Scope outer_;
  Scope inner_{&outer_};
};

TEST_F(References, VariablesAndListsAndDollars) {
  inner_.set("lr", std::string("2e-5"));  // hides the outer one
  EXPECT_EQ(filled("a ${lr} b"), "a 2e-5 b");
  EXPECT_EQ(filled("${seeds}"), "1,2");
  EXPECT_EQ(filled("$${lr} $$ $"), "${lr} $ $");
  EXPECT_EQ(filled("${grid.beta}"), "0.3");
  const auto list = fill(Value{{"${seeds}", "x${lr}"}, true}, inner_.lookup());
  ASSERT_TRUE(list);
  EXPECT_EQ(list->items, (std::vector<std::string>{"1", "2", "x2e-5"}));
  EXPECT_TRUE(fill(Value{{"${seeds}"}, false}, inner_.lookup())->is_list);
}

TEST_F(References, WhatAStageLeft) {
  EXPECT_EQ(filled("${sft.dir}"), (folder_ / "sft").string());
  EXPECT_EQ(filled("${sft.run}"), (folder_ / "sft/run").string());
  EXPECT_EQ(filled("${sft.model}"), (folder_ / "sft/run/ckpt/step_000010/model").string());
  EXPECT_EQ(filled("${sft.cpu_s} ${sft.steps}"), "12.5 10");
  EXPECT_EQ(filled("${sft.figures.eval/pass@1}"), "0.5");
  EXPECT_EQ(filled("${sft.figures.eval/pass@1.low}"), "0.25");
  EXPECT_EQ(filled("${sft.figures.eval/pass@1.mean}"), "0.5");
}

TEST_F(References, WhatAStageWillLeave) {
  EXPECT_EQ(filled("${dpo.model}"), (folder_ / "dpo/run/ckpt/last/model").string());
  EXPECT_TRUE(is_unknown(filled("${dpo.cpu_s}")));
  EXPECT_TRUE(is_unknown(filled("x ${dpo.figures.loss}")));
  EXPECT_FALSE(is_unknown(filled("${dpo.dir}")));
}

TEST_F(References, MistakesSayWhatThereIs) {
  EXPECT_NE(filled("${lrr}").find("nothing here has this name; did you mean 'lr'?"),
            std::string::npos)
      << filled("${lrr}");
  EXPECT_NE(filled("${sft}").find("write ${sft.WHAT}"), std::string::npos) << filled("${sft}");
  EXPECT_NE(filled("${lr.x}").find("is a variable"), std::string::npos) << filled("${lr.x}");
  EXPECT_NE(filled("${sft.out}").find("a stage of `train` has dir"), std::string::npos);
  EXPECT_NE(filled("${sft.critic}").find("left no critic"), std::string::npos);
  EXPECT_NE(filled("${sft.figures.eval/pas@1}").find("did you mean 'eval/pass@1'?"),
            std::string::npos);
  EXPECT_NE(filled("${grid.lr}").find("have no 'lr'"), std::string::npos);
  EXPECT_NE(filled("a ${lr").find("that does not end"), std::string::npos);
}

}  // namespace
}  // namespace troupe::pipeline
