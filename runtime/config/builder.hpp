// Turns settings into a TrainConfig: takes those of files and flags, checks name, type and range of
// each, and at the end the rules between keys. Later values win: default < files < flags. Owned by
// the command that reads a configuration; one thread.
#pragma once

#include "runtime/config/table.hpp"

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace troupe::config {

// Where each key that is not a default was set.
using Origins = std::map<std::string, std::string, std::less<>>;

class Builder {
 public:
  // A configuration of `troupe train METHOD`, with that method's defaults. `table` outlives it.
  explicit Builder(const Table& table, Methods method = kPpo);

  // Errors (kConfig): unknown key (names the nearest), wrong type, out of range; each says where.
  core::Result<void> set(const Setting& setting);
  // Sets what can be set and tells all that is wrong.
  core::Result<void> set_all(std::span<const Setting> settings);

  // Checks what holds between keys and that needed keys are there.
  core::Result<TrainConfig> finish() const;

  // As it stands, without the final checks.
  const TrainConfig& current() const { return config_; }
  const Origins& origins() const { return origins_; }

 private:
  const Table* table_;
  TrainConfig config_;
  Origins origins_;
};

// The method that the settings ask for, ppo when none does; `asked` (may be kNoMethod) is the word
// of the command line, which they must not contradict. Error kConfig: they do, or no such method.
core::Result<Methods> method_of(std::span<const Setting> settings, Methods asked = kNoMethod);

// The rules between keys, those of `table` among them, each error naming the keys: all needed keys
// that are missing are told, and of each part what is wrong first. `origins` may be empty.
core::Result<void> check(const TrainConfig& config, const Table& table, const Origins& origins);

}  // namespace troupe::config
