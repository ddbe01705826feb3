// The safetensors files of a model's folder: model.safetensors, or the shards that
// model.safetensors.index.json names. The index is checked against its shards: each tensor is where
// the index says, no shard has one that the index omits, and none occurs twice. The rotary
// frequencies of old checkpoints are skipped, because they follow from config.json. Internal to
// this room; one owner.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/store/safetensors.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::model {

// A kData failure that names a file or folder of a model and what is wrong with it.
core::Failure bad_file(const std::filesystem::path& where,
                       const std::string& why,
                       std::string_view advice = {});

class WeightFiles {
 public:
  struct Place {
    const store::SafetensorsFile* file = nullptr;
    const store::TensorInfo* tensor = nullptr;
  };

  // Errors: kNotFound (no weights), kData (pickled weights, a malformed file, an index that does
  // not match its shards). Messages name file and tensor.
  static core::Result<WeightFiles> open(const std::filesystem::path& folder);

  const std::map<std::string, Place, std::less<>>& tensors() const { return tensors_; }
  const Place* find(std::string_view name) const;  // null when absent
  void leave_out(std::string_view name);           // forgets a tensor; no error if absent
  std::vector<std::filesystem::path> paths() const;
  // The file that lists the tensors: the single weights file, or the index.
  const std::filesystem::path& listing() const { return listing_; }

 private:
  using Index = std::map<std::string, std::string, std::less<>>;  // tensor name to file name
  static core::Result<Index> read_index(const std::filesystem::path& path);
  core::Result<void> open_shards(const Index& index);
  core::Result<void> list_tensors();
  core::Result<void> check_index(const Index& index) const;

  std::filesystem::path listing_;
  std::vector<store::SafetensorsFile> files_;
  std::map<std::string, Place, std::less<>> tensors_;
};

}  // namespace troupe::model
