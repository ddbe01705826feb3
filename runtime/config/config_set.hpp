// Turns text into a TrainConfig: takes key = value pairs from files and flags, checks name, type
// and range of each, and at the end the rules between keys. Later values win: default < files <
// flags. Owned by the command that reads a configuration; one thread.
#pragma once

#include "runtime/config/config_table.hpp"
#include "runtime/core/result.hpp"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::config {

// One key = value as it was written, not yet checked. `where` is "demo.yaml:4" or "the command
// line".
struct ConfigText {
  std::string name;
  std::vector<std::string> values;  // one for a scalar, the items of a list
  bool is_list = false;             // written as a list
  std::string where;
};

class ConfigBuilder {
 public:
  // A configuration of `troupe train METHOD`, with that method's defaults.
  explicit ConfigBuilder(std::string_view method = "ppo");

  // Errors (kConfig): unknown key (names the nearest), wrong type, out of range; each says where.
  core::Result<void> set(const ConfigText& text);
  // Sets what can be set and tells all that is wrong.
  core::Result<void> set_all(std::span<const ConfigText> texts);

  // Checks what holds between keys and that needed keys are there.
  core::Result<TrainConfig> finish() const;

  // As it stands, without the final checks.
  const TrainConfig& current() const { return config_; }
  // Where each key that is not a default was set.
  const std::map<std::string, std::string, std::less<>>& origins() const { return origins_; }

 private:
  TrainConfig config_;
  std::map<std::string, std::string, std::less<>> origins_;
};

// The method that the texts ask for, `fallback` when none does; `asked` (may be empty) is the word
// of the command line, which they must not contradict. Error kConfig: they do, or no such method.
core::Result<std::string> config_method(std::span<const ConfigText> texts,
                                  std::string_view asked,
                                  std::string_view fallback = "ppo");

// The rules between keys, each error naming the keys; all needed keys that are missing are told,
// and of each part what is wrong first. `origins` may be empty.
core::Result<void> check_config(const TrainConfig& config,
                          const std::map<std::string, std::string, std::less<>>& origins);

// The error for a name that is not a key.
core::Error unknown_config_key(std::string_view name, std::string_view where);

}  // namespace troupe::config
