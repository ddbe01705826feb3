// Files of other trainers, and the configurations that are made of them.
#pragma once

#include "runtime/config/peer_recipe.hpp"
#include "runtime/config/read.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

namespace troupe::config {

inline std::optional<std::string> no_variables(std::string_view) {
  return std::nullopt;
}

inline core::Result<PythonScript> no_python(const std::filesystem::path& file) {
  return core::fail(core::ErrorCode::kConfig, file.string() + ": no Python here");
}

using Values = std::map<std::string, std::string>;

class PeerFiles : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  // The recipe of a file, or the message of its error, without the folder.
  std::string recipe(const std::string& peer, const std::string& path, Methods asked = kNoMethod) {
    const auto read = read_peer_file(keys(), peer, path, asked, no_variables, python_);
    if (!read) return plain(read.error().message);
    made_ = make_recipe(keys(), *read, "FILE");
    return plain(made_.yaml);
  }
  std::string plain(std::string text) const {
    const std::string folder = (folder_ / "").string();
    for (auto at = text.find(folder); at != text.npos; at = text.find(folder))
      text.erase(at, folder.size());
    // A long comment is one line again.
    for (auto at = text.find("\n# "); at != text.npos; at = text.find("\n# ", at + 1)) {
      if (text.compare(at + 3, 2, "- ") != 0) text.replace(at, 3, " ");
    }
    return text;
  }
  // The keys of the recipe that was made last, read back.
  Values values() {
    Values out;
    const std::vector<std::string> words = {file("made.yaml", made_.yaml)};
    const auto built = read(keys(), words);
    EXPECT_TRUE(built) << built.error().message << made_.yaml;
    if (!built) return out;
    for (const auto& [name, where] : built->origins())
      out[name] = keys().find(name)->yaml(built->current());
    return out;
  }

  test::TempFolder folder_;
  PythonReader python_ = no_python;
  PeerRecipe made_;
};

}  // namespace troupe::config
