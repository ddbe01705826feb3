// What execve(2) takes, made before fork(2): words as pointers, and our environment with changes.
// Used by everything that starts this program again. Pure but for reading the environment.
#pragma once

#include <string>
#include <vector>

namespace troupe::app {

// Null-terminated; good for as long as `words` is not changed.
std::vector<char*> exec_pointers(std::vector<std::string>& words);

// Our environment, where `changes` (NAME=value) replace or join what is there.
std::vector<std::string> merged_environment(const std::vector<std::string>& changes);

}  // namespace troupe::app
