// Turns settings from files and flags into a TrainConfig. Checks name, type and range of each, and
// finally the rules between keys. Later values win: default < files < flags. Owned by the command
// that reads a configuration; one thread.
#pragma once

#include "runtime/config/refuse.hpp"
#include "runtime/config/table.hpp"

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace troupe::config {

// Where each key was set; keys with their default are absent.
using Origins = std::map<std::string, std::string, std::less<>>;

class Builder {
 public:
  // Starts with the defaults of `troupe train METHOD`. `table` must outlive the builder.
  explicit Builder(const Table& table, Methods method = kPpo);

  // Errors (kConfig): unknown key (suggests the nearest), key that the method does not read, wrong
  // type, out of range. Each says where the setting was written.
  core::Result<void> set(const Setting& setting);
  // Sets what can be set, and reports all errors together.
  core::Result<void> set_all(std::span<const Setting> settings);

  // Like set_all, for the resolved configuration of a run: keys younger than it get what it did
  // without them (Facts::older).
  core::Result<void> set_run(std::span<const Setting> settings);

  // Checks the rules between keys, and that all needed keys are set.
  core::Result<TrainConfig> finish() const;

  // The current state, without the final checks.
  const TrainConfig& current() const { return config_; }
  const Origins& origins() const { return origins_; }

  // What the user should know of names that were taken.
  void note(std::string text) { notes_.push_back(std::move(text)); }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  const Table* table_;
  TrainConfig config_;
  Origins origins_;
  std::vector<std::string> notes_;
};

// The method that the settings ask for, or ppo if none does. `asked` (may be kNoMethod) is the
// method on the command line. Errors (kConfig): the settings contradict it or each other, or there
// is no such method.
core::Result<Methods> method_of(std::span<const Setting> settings, Methods asked = kNoMethod);

// Checks the rules between keys (rules.def), and for ppo also those of `table`. Reports all needed
// keys that are missing, the first broken rule of each key, and the first broken rule of `table`.
// Errors name the keys. `origins` may be empty.
core::Result<void> check(const TrainConfig& config, const Table& table, const Origins& origins);

// The first broken rule of rules.def whose key begins with `prefix`, or names no key: "KEY: why";
// "" when all hold.
Saying broken_rule(const TrainConfig& config, std::string_view prefix);

}  // namespace troupe::config
