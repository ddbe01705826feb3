// Words and environment of a program to be started.
#include "apps/cli/exec_words.hpp"

#include <unistd.h>

namespace troupe::app {

std::vector<char*> exec_pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& text : words)
    result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> merged_environment(const std::vector<std::string>& changes) {
  std::vector<std::string> result = changes;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('=') + 1);
    bool replaced = false;
    for (const std::string& change : changes)
      replaced = replaced || change.compare(0, name.size(), name) == 0;
    if (!replaced) result.push_back(text);
  }
  return result;
}

}  // namespace troupe::app
