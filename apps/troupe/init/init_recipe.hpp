// Makes a first configuration of a method for the data, model and machine that were found.
#pragma once

#include "apps/troupe/init/init_facts.hpp"
#include "runtime/config/builder.hpp"

#include <string>
#include <vector>

namespace troupe::app {

struct InitRequest {
  std::string word;  // as it was asked for: "sft", "grpo"
  std::string data, model, out;
  std::string estimator;  // of the advantage, for words like grpo; empty: the default
};

struct InitRecipe {
  std::string yaml;
  std::vector<std::string> missing;  // what a run would still refuse
};

// `given` holds what the user set by keys, which stays as it is; its table outlives the call.
InitRecipe make_init_recipe(const config::Table& table,
                            const InitRequest& request,
                            const InitFacts& facts,
                            const config::Builder& given);

}  // namespace troupe::app
