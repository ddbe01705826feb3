#include "apps/pipeline/pipeline_file.hpp"

#include "apps/pipeline/limits.hpp"
#include "apps/pipeline/yaml_fields.hpp"
#include "runtime/core/edit_distance.hpp"
#include "runtime/core/split.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

namespace troupe::pipeline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTopFields[] = {"about", "variables", "shared", "silent_s", "stages"};
constexpr std::string_view kStageFields[] = {"stage", "run", "config", "keys", "report", "budget"};
constexpr std::string_view kRepeatFields[] = {"repeat", "name", "first", "then", "stages"};
constexpr std::string_view kEachFields[] = {"each", "stages"};
constexpr std::string_view kSearchFields[] = {"search", "points", "best",
                                              "lowest", "once",   "stages"};
constexpr std::string_view kBudgetFields[] = {"cpu_s", "rate_of"};

class Reader {
 public:
  Reader(const std::string& name, core::ErrorList& wrong) : fields_(name, wrong) {}

  void read(const YAML::Node& root, PipelineFile& out) {
    if (!fields_.map(root, "a pipeline", kTopFields)) return;
    out.about = fields_.text(root, "about");
    out.variables = values(root["variables"], "variables");
    for (const auto& [name, value] : out.variables)
      take_name(name, root["variables"]);
    shared(root["shared"], out);
    if (root["silent_s"]) out.silent_s = fields_.number(root, "silent_s");
    if (out.silent_s < 0) fields_.wrong(root["silent_s"], "silent_s is below 0");
    out.body = body(root, 0);
  }

 private:
  void take_name(const std::string& name, const YAML::Node& node) {
    if (!is_name(name)) {
      fields_.wrong(node, "'" + name +
                              "' is not a name; use letters, digits, _ and -, and begin with a "
                              "letter");
      return;
    }
    if (name == "here" || name == "folder")
      fields_.wrong(node, "'" + name + "' is what the pipeline itself is called; choose another");
    const auto [first, fresh] = names_.emplace(name, fields_.place(node));
    if (!fresh)
      fields_.wrong(node, "the name '" + name + "' is used twice, first at " + first->second);
  }

  Values values(const YAML::Node& node, const std::string& what) {
    Values out;
    if (!node || node.IsNull()) return out;
    if (!node.IsMap()) {
      fields_.wrong(node, what + ": `name: value` pairs expected");
      return out;
    }
    for (const auto& entry : node)
      out.emplace_back(entry.first.Scalar(), fields_.value(entry.second, what));
    return out;
  }

  void shared(const YAML::Node& node, PipelineFile& out) {
    if (!node || node.IsNull()) return;
    if (!node.IsMap()) {
      fields_.wrong(node, "shared: `command:` with keys below it expected");
      return;
    }
    for (const auto& entry : node)
      out.shared.emplace_back(entry.first.Scalar(), values(entry.second, "shared"));
  }

  std::vector<Block> body(const YAML::Node& node, std::uint64_t depth) {
    std::vector<Block> out;
    const YAML::Node& list = node["stages"];
    if (!list || !list.IsSequence() || list.size() == 0) {
      fields_.wrong(list ? list : node, "`stages:` holds no list of stages");
      return out;
    }
    if (depth > limits::kPipelineDepth_max) {
      fields_.wrong(list, "loops are nested too deeply");
      return out;
    }
    for (const YAML::Node& one : list)
      out.push_back(block(one, depth));
    return out;
  }

  Block block(const YAML::Node& node, std::uint64_t depth) {
    Block out;
    out.where = fields_.place(node);
    if (!node.IsMap()) {
      fields_.wrong(node, "a stage or a loop expected, such as `- stage: sft`");
    } else if (node["repeat"]) {
      repeat(node, out);
    } else if (node["each"]) {
      each(node, out);
    } else if (node["search"]) {
      search(node, out);
    } else if (node["stage"]) {
      stage(node, out.stage);
      return out;
    } else {
      fields_.wrong(node, "says neither stage, repeat, each nor search");
    }
    if (node.IsMap() && out.kind != BlockKind::kStage) out.body = body(node, depth + 1);
    return out;
  }

  void stage(const YAML::Node& node, Stage& out) {
    if (!fields_.map(node, "a stage", kStageFields)) return;
    out.name = fields_.text(node, "stage");
    take_name(out.name, node["stage"]);
    std::istringstream words(fields_.text(node, "run"));
    for (std::string word; words >> word;)
      out.command.push_back(word);
    if (out.command.empty()) {
      fields_.wrong(
          node, "stage '" + out.name + "' runs nothing; give `run: train sft` or another command");
    }
    if (node["config"]) out.config = fields_.value(node["config"], "config").items;
    out.keys = values(node["keys"], "keys");
    for (const auto& [column, figure] : values(node["report"], "report")) {
      if (figure.items.size() != 1) {
        fields_.wrong(node["report"], "report: one figure a column expected");
      } else {
        out.report.emplace_back(column, figure.items[0]);
      }
    }
    if (const YAML::Node& budget = node["budget"]) {
      if (!fields_.map(budget, "a budget", kBudgetFields)) return;
      out.budget = {fields_.needed(budget, "cpu_s"), fields_.needed(budget, "rate_of")};
    }
  }

  void repeat(const YAML::Node& node, Block& out) {
    out.kind = BlockKind::kRepeat;
    if (!fields_.map(node, "a repetition", kRepeatFields)) return;
    out.count = fields_.value(node["repeat"], "repeat");
    out.name = node["name"] ? fields_.text(node, "name") : "round";
    take_name(out.name, node);
    out.first = values(node["first"], "first");
    out.then = values(node["then"], "then");
    const auto known = [](const Values& some, const std::string& name) {
      return std::ranges::any_of(some, [&](const auto& one) { return one.first == name; });
    };
    for (const auto& [name, value] : out.first) {
      take_name(name, node["first"]);
      if (!known(out.then, name)) {
        fields_.wrong(node["first"], "'" + name +
                                         "' has no value in later rounds; give it one below "
                                         "`then:`");
      }
    }
    for (const auto& [name, value] : out.then) {
      if (!known(out.first, name)) {
        fields_.wrong(node["then"],
                      "'" + name + "' has no value in the first round; give it one below `first:`");
      }
    }
  }

  void each(const YAML::Node& node, Block& out) {
    out.kind = BlockKind::kEach;
    if (!fields_.map(node, "a loop", kEachFields)) return;
    const Values variables = values(node["each"], "each");
    if (variables.size() != 1) {
      fields_.wrong(node["each"], "one variable expected, as in `each: {seed: [1, 2, 3]}`");
      return;
    }
    out.name = variables[0].first;
    out.count = variables[0].second;
    take_name(out.name, node["each"]);
  }

  void search(const YAML::Node& node, Block& out) {
    out.kind = BlockKind::kSearch;
    if (!fields_.map(node, "a search", kSearchFields)) return;
    out.name = fields_.text(node, "search");
    take_name(out.name, node["search"]);
    out.best = fields_.needed(node, "best");
    out.lowest = fields_.truth(node, "lowest");
    out.once = fields_.truth(node, "once");
    const YAML::Node& points = node["points"];
    if (!points || !points.IsSequence() || points.size() == 0) {
      fields_.wrong(points ? points : node, "`points:` holds no list of points, each a map");
      return;
    }
    for (const YAML::Node& point : points) {
      out.points.push_back(values(point, "points"));
      if (out.points.size() > 1 && !same_names(out.points.front(), out.points.back()))
        fields_.wrong(point, "each point gives the same variables a value");
    }
    for (const auto& [name, value] : out.points.front())
      take_name(name, points);
  }

  static bool same_names(const Values& one, const Values& other) {
    return std::ranges::is_permutation(one, other, {}, &Values::value_type::first,
                                       &Values::value_type::first);
  }

  YamlFields fields_;
  std::map<std::string, std::string> names_;  // where each was first used
};

}  // namespace

bool is_name(std::string_view text) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, good) &&
         !(text[0] >= '0' && text[0] <= '9') && text[0] != '-';
}

Result<PipelineFile> parse_pipeline(const std::string& text, const fs::path& file) {
  PipelineFile out;
  out.path = file;
  core::ErrorList wrong;
  const std::string name = file.string();
  TROUPE_TRY_ASSIGN(root, load_yaml(text, name));
  try {
    Reader(name, wrong).read(root, out);
  } catch (const YAML::Exception& error) {
    wrong.add(ErrorCode::kConfig, name + ": not a pipeline: " + error.what());
  }
  TROUPE_TRY(wrong.result());
  return out;
}

Result<PipelineFile> read_pipeline(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in || fs::is_directory(file)) {
    return core::fail(ErrorCode::kNotFound, "cannot read " + file.string(),
                      "give the YAML file of a pipeline");
  }
  std::string text(limits::kPipelineFile_bytes_max + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > limits::kPipelineFile_bytes_max)
    return core::fail(ErrorCode::kConfig, file.string() + ": too large for a pipeline");
  return parse_pipeline(text, file);
}

Result<void> set_variables(PipelineFile& file, const std::vector<std::string>& settings) {
  core::ErrorList wrong;
  for (const std::string& setting : settings) {
    const auto equals = setting.find('=');
    const std::string name = setting.substr(0, equals);
    const auto found = std::ranges::find(file.variables, name, &Values::value_type::first);
    if (equals == setting.npos) {
      wrong.add(ErrorCode::kConfig, "--set " + setting + ": expected name=value");
    } else if (found == file.variables.end()) {
      std::vector<std::string_view> names;
      for (const auto& [one, value] : file.variables)
        names.push_back(one);
      const std::string near(core::nearest_word(name, names));
      wrong.add(ErrorCode::kConfig,
                "--set " + setting + ": " + file.path.string() + " has no variable '" + name + "'",
                (near.empty() ? "its variables stand below `variables:`"
                              : "did you mean '" + near + "'?"));
    } else if (found->second.is_list) {
      found->second.items.clear();
      for (const std::string_view item : core::split(setting.substr(equals + 1), ","))
        found->second.items.emplace_back(item);
    } else {
      found->second.items = {setting.substr(equals + 1)};
    }
  }
  TROUPE_TRY(wrong.result());
  for (const auto& [name, value] : file.variables) {
    if (value.is_list || !value.items.at(0).empty()) continue;
    wrong.add(ErrorCode::kConfig, file.path.string() + ": variable '" + name + "' has no value",
              "give --set " + name + "=VALUE");
  }
  return wrong.result();
}

}  // namespace troupe::pipeline
