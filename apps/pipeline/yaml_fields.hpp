// Reads the fields of YAML maps and says what is wrong with them, with file and line. Used while a
// pipeline's file is read.
#pragma once

#include "apps/pipeline/pipeline_file.hpp"
#include "runtime/core/error_list.hpp"

#include <yaml-cpp/yaml.h>

#include <span>
#include <string>
#include <string_view>

namespace troupe::pipeline {

// The one document of a text. Error: kConfig with the line of what is no YAML.
core::Result<YAML::Node> load_yaml(const std::string& text, const std::string& name);

class YamlFields {
 public:
  // Mistakes go to `wrong`, which outlives this object.
  YamlFields(std::string file, core::ErrorList& wrong) : file_(std::move(file)), wrong_(wrong) {}

  std::string place(const YAML::Node& node) const;  // "tour.yaml:12"
  void wrong(const YAML::Node& node, const std::string& what);
  // Whether it is a map; says which of its fields are none of `known`. `what`: "a stage".
  bool map(const YAML::Node& node,
           const std::string& what,
           std::span<const std::string_view> known);
  std::string text(const YAML::Node& map, const char* field);    // empty without the field
  std::string needed(const YAML::Node& map, const char* field);  // says that it is missing
  double number(const YAML::Node& map, const char* field);
  bool truth(const YAML::Node& map, const char* field);  // false without the field
  Value value(const YAML::Node& node, const std::string& what);

 private:
  std::string file_;
  core::ErrorList& wrong_;
};

}  // namespace troupe::pipeline
