// A resumable output file of JSON lines: OUT.part grows, OUT.part.json records the settings, and
// OUT appears complete at the end. The same command resumes where a killed one stopped and ends
// with the same bytes. One process at a time (a file lock that ends with it). Owned by a command;
// one thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/store/append_file.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::app {

// The settings that the content depends on, by the name that an error shows. A part is only
// continued with equal settings.
using PartSettings = std::vector<std::pair<std::string, std::string>>;

class PartFile {
 public:
  // Lines come in bundles of `bundle` that belong together; an unfinished one is cut off. Errors:
  // kConfig when `out` is there already (unless `overwrite`) or a part was made with other
  // settings, naming them; kResources when another process writes it.
  static core::Result<PartFile> open(const std::filesystem::path& out,
                                     const PartSettings& settings,
                                     std::uint64_t bundle,
                                     bool overwrite);

  // Number of complete bundles in the part.
  std::uint64_t bundles() const { return bundles_; }
  // Appends whole bundles.
  core::Result<void> append(std::string_view lines, std::uint64_t bundles);
  // What the part holds.
  core::Result<std::string> content() const;
  // Gives `out` the content of the part, or `content`, and removes the part.
  core::Result<void> finish();
  core::Result<void> finish(std::string_view content);

 private:
  PartFile(std::filesystem::path out,
           store::AppendFile file,
           core::OwnedFd lock,
           std::uint64_t bundles);
  void remove_settings() const;

  std::filesystem::path out_;
  store::AppendFile file_;
  core::OwnedFd lock_;
  std::uint64_t bundles_;
};

// "path (bytes, sha256)" of a file, for settings.
core::Result<std::string> file_identity(const std::filesystem::path& file);
// Of each file of a list with commas.
core::Result<std::string> files_identity(const std::string& files);
// Of a model folder: the names, sizes and times of its weight, tokenizer and configuration files.
std::string model_identity(const std::filesystem::path& folder);

}  // namespace troupe::app
