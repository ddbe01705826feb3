// The safetensors files of a model's folder: model.safetensors, or the shards that
// model.safetensors.index.json names. The index is checked against its shards: each tensor is where
// it says, no shard holds one that it leaves out, none is there twice. The rotary frequencies of
// old checkpoints are left out, for they follow from config.json. Internal to this room; one owner.
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

// kData: what is wrong with a file, or a folder, of a model.
core::Failure bad_file(const std::filesystem::path& where, const std::string& why);

class WeightFiles {
 public:
  struct Place {
    const store::SafetensorsFile* file = nullptr;
    const store::TensorInfo* tensor = nullptr;
  };

  // Errors: kNotFound (no weights), kData (pickled weights, a malformed file, an index that is not
  // true of its shards; each names file and tensor).
  static core::Result<WeightFiles> open(const std::filesystem::path& folder);

  const std::map<std::string, Place, std::less<>>& tensors() const { return tensors_; }
  const Place* find(std::string_view name) const;  // null when absent
  void leave_out(std::string_view name);
  std::vector<std::filesystem::path> paths() const;
  // The file that says which tensors there are: the only one, or the index.
  const std::filesystem::path& listing() const { return listing_; }

 private:
  using Index = std::map<std::string, std::string, std::less<>>;  // tensor to file name
  static core::Result<Index> read_index(const std::filesystem::path& path);
  core::Result<void> open_shards(const Index& index);
  core::Result<void> list_tensors();
  core::Result<void> check_index(const Index& index) const;

  std::filesystem::path listing_;
  std::vector<store::SafetensorsFile> files_;
  std::map<std::string, Place, std::less<>> tensors_;
};

}  // namespace troupe::model
