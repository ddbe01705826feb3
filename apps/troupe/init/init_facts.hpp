// What `troupe init` finds: the rows of the data, the model, the machine. Reads the first rows, and
// of a model its config.json, tokenizer and chat template.
#pragma once

#include "runtime/config/method.hpp"
#include "runtime/core/result.hpp"
#include "runtime/data/row_look.hpp"
#include "runtime/model/spec.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::app {

struct ModelFound {
  model::ModelSpec spec;
  bool has_template = false;    // its folder has a chat template
  std::int64_t row_tokens = 0;  // of the longest row that was looked at; 0: none was
};

struct MachineFound {
  std::string processor;
  int cores = 1;
  std::int64_t memory = 0;  // bytes that this process may use; 0: unknown
};

struct InitFacts {
  std::optional<data::RowLook> rows;  // without --data: nothing
  std::optional<ModelFound> model;    // without --model: nothing
  MachineFound machine;
};

// `data` and `model` may be empty. Errors: those of look_at_rows, resolve_model, read_spec and
// Tokenizer::load, all of them together, each with the flag; kData, if the rows are messages and
// the model has no chat template.
core::Result<InitFacts> find_facts(config::Methods method,
                                   const std::string& data,
                                   const std::string& model,
                                   const data::NamedColumns& named);

}  // namespace troupe::app
