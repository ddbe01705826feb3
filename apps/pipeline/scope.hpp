// What names mean at a place of a pipeline: variables, stages and searches of this place and of the
// loops around it. Used by one walk over a pipeline.
#pragma once

#include "apps/pipeline/pipeline_file.hpp"
#include "apps/pipeline/references.hpp"
#include "apps/pipeline/stage_commands.hpp"
#include "apps/pipeline/stage_record.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace troupe::pipeline {

// A stage in one turn of its loops, as others refer to it.
struct StageTurn {
  const StageCommand* command = nullptr;
  std::filesystem::path folder;
  StageRecord record;  // with figures once it is finished

  bool finished() const { return record.finished(); }
};
using StageTurns = std::map<std::string, std::shared_ptr<const StageTurn>>;

// Begins a text that is not known before a stage has run.
inline constexpr char kUnknown = '\x01';
bool is_unknown(std::string_view text);

class Scope {
 public:
  explicit Scope(const Scope* outer = nullptr) : outer_(outer) {}

  void set(const std::string& name, Value value) { variables_[name] = std::move(value); }
  void set(const std::string& name, std::string value) {
    set(name, Value{{std::move(value)}, false});
  }
  void set(const std::string& name, std::shared_ptr<const StageTurn> turn) {
    stages_[name] = std::move(turn);
  }
  // Takes over stages and searches of an inner scope that has ended.
  void take(const Scope& inner);
  // The variables of a search's best point are also known as SEARCH.NAME.
  void set_search(const std::string& search, const std::map<std::string, Value>& point) {
    searches_[search] = point;
  }

  // The value of `name`: a variable, STAGE.WHAT or SEARCH.NAME. WHAT is dir, log, cpu_s, wall_s,
  // steps, figures.KEY or an output of its command. Of a stage that has not run it is a path that
  // may be, or a text that begins with kUnknown. Errors (kConfig): no such name.
  core::Result<Value> look_up(std::string_view name) const;
  // The turn of a stage that is known here; null without one.
  const StageTurn* stage(std::string_view name) const;

  Lookup lookup() const {
    return [this](std::string_view name) { return look_up(name); };
  }

 private:
  core::Result<Value> of_stage(const StageTurn& turn,
                               std::string_view stage,
                               std::string_view what) const;
  core::Failure no_such(std::string_view name) const;

  const Scope* outer_;
  std::map<std::string, Value, std::less<>> variables_;
  std::map<std::string, std::shared_ptr<const StageTurn>, std::less<>> stages_;
  std::map<std::string, std::map<std::string, Value>, std::less<>> searches_;
};

}  // namespace troupe::pipeline
