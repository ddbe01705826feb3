// A resumable output file of JSON lines: OUT.part grows, OUT.part.json records the settings, and
// OUT appears complete at the end. The same command resumes where a killed one stopped and ends
// with the same bytes. A file lock, held until the process ends, keeps other processes out. Owned
// by a command; one thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/store/append_file.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::cli {

// The settings that the content depends on: name, as errors show it, and value. A part is continued
// only with equal settings.
using PartSettings = std::vector<std::pair<std::string, std::string>>;

class PartFile {
 public:
  // Every `bundle` lines belong together; an incomplete bundle at the end of a part is cut off.
  // Errors: kConfig when `out` exists already (unless `overwrite`), is a folder, or has a part made
  // with other settings, which the message names; kResources when another process writes it.
  static core::Result<PartFile> open(const std::filesystem::path& out,
                                     const PartSettings& settings,
                                     std::uint64_t bundle,
                                     bool overwrite);

  // Number of complete bundles in the part.
  std::uint64_t bundles() const { return bundles_; }
  // Appends whole bundles.
  core::Result<void> append(std::string_view lines, std::uint64_t bundles);
  // The bytes of the part.
  core::Result<std::string> content() const;
  // Creates `out` from the part's content, or from `content`, and removes the part.
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

// A setting that identifies a file: its path, size and the beginning of its SHA-256.
core::Result<std::string> file_identity(const std::filesystem::path& file);
// The setting for a list of files, separated by commas.
core::Result<std::string> files_identity(const std::string& files);
// A setting that identifies a model folder: its path and a hash of the names, sizes and times of
// its weight, tokenizer and configuration files.
std::string model_identity(const std::filesystem::path& folder);

}  // namespace troupe::cli
