// A pipeline as its YAML file says it: variables, and stages in loops. Values are texts in which
// ${name} stands for something that is known when their stage begins (references.hpp). Value types;
// reading is a pure function of the file.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::pipeline {

// A scalar, or a list of them.
struct Value {
  std::vector<std::string> items;
  bool is_list = false;
};
// Names and values in the order of the file.
using Values = std::vector<std::pair<std::string, Value>>;

// One `troupe` subcommand.
struct Stage {
  std::string name;
  std::vector<std::string> command;  // the subcommand's words: {"train", "sft"}
  std::vector<std::string> config;   // YAML files of `train`, relative to the pipeline's file
  Values keys;                       // flags without their dashes
  // Columns of the final table: a name, and the figure that it shows.
  std::vector<std::pair<std::string, std::string>> report;
  // The length of a training run, so that it takes that many processor seconds: as many steps as at
  // the rate of an earlier stage.
  struct Budget {
    std::string cpu_s, rate_of;
  };
  std::optional<Budget> budget;
};

enum class BlockKind {
  kStage,
  kRepeat,  // rounds that follow from each other
  kEach,    // one variable takes several values
  kSearch,  // points of which the best is kept
};

struct Block {
  BlockKind kind = BlockKind::kStage;
  std::string where;           // "tour.yaml:12"
  Stage stage;                 // of kStage
  std::string name;            // of a loop: its variable; of a search: its name
  Value count;                 // of kRepeat: a number; of kEach: the values
  Values first;                // of kRepeat: variables in the first round
  Values then;                 // of kRepeat: variables in later rounds, from the round before
  std::vector<Values> points;  // of kSearch
  std::string best;            // of kSearch: a reference to the figure that decides
  bool lowest = false;         // the lowest figure is the best
  bool once = false;           // within a loop: searched in its first turn alone
  std::vector<Block> body;
};

struct PipelineFile {
  std::filesystem::path path;
  std::string about;
  Values variables;
  // Keys of all stages of a command ("train", "train sft"), unless a stage gives its own.
  std::vector<std::pair<std::string, Values>> shared;
  double silent_s = 300;  // seconds without processor time until a stage is frozen; 0: never
  std::vector<Block> body;
};

// Reads and checks the form of a file. Errors: kNotFound; kConfig, all mistakes together, each with
// file and line: not YAML, unknown fields, missing ones, names that are used twice or are no names.
core::Result<PipelineFile> read_pipeline(const std::filesystem::path& file);
core::Result<PipelineFile> parse_pipeline(const std::string& text,
                                          const std::filesystem::path& file);

// `--set name=value`: gives variables of the file other values; commas separate those of a list.
// Errors (kConfig): no `=`, no variable of that name, or one that is still empty.
core::Result<void> set_variables(PipelineFile& file, const std::vector<std::string>& settings);

// Letters, digits, _ and -, not a digit first.
bool is_name(std::string_view text);

}  // namespace troupe::pipeline
