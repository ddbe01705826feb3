// The method that a word of a command line asks for. Pure.
#pragma once

#include "runtime/config/method.hpp"
#include "runtime/core/result.hpp"

#include <string>

namespace troupe::app {

struct Asked {
  config::Methods method = config::kNoMethod;
  std::string estimator;  // of ppo, where the word is the name of one; empty: none
};

// A method, or an estimator of ppo by one of its names. Error kConfig, with the nearest one.
Result<Asked> asked_for(const std::string& word);

}  // namespace troupe::app
