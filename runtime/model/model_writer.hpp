// Writes a model folder that transformers can open: config.json with the storage dtype, weights
// with the hub's conventional shard names and index, and copies of the tokenizer files. The weights
// come piece by piece, so that no process has to have all of them. The folder appears complete or
// not at all. One thread.
#pragma once

#include "runtime/core/range.hpp"
#include "runtime/core/result.hpp"
#include "runtime/model/params.hpp"
#include "runtime/model/weights_writer.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/written_files.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::model {

struct ModelFolder {
  std::filesystem::path path;
  StorageDtype dtype = StorageDtype::kF32;
  std::filesystem::path tokenizer_from{};  // a folder; empty: no tokenizer files
  std::uint64_t shard_bytes_max = 4ull << 30;
};

class ModelWriter {
 public:
  // Writes all but the weights.
  static core::Result<ModelWriter> begin(const ModelSpec& spec,
                                         std::shared_ptr<const ParamLayout> layout,
                                         const ModelFolder& folder);

  // As WeightsWriter::add, for all tensors of the layout.
  core::Result<void> add(core::Range place, const float* numbers);
  // After the last piece. `noted`: the folder keeps the list of what was hashed on the way, for the
  // checkpoint that it belongs to.
  core::Result<void> commit(bool noted = false);

 private:
  struct Shard {
    std::size_t first = 0, last = 0;  // views of the layout
    std::uint64_t bytes = 0;
    std::string name;
  };
  ModelWriter(std::shared_ptr<const ParamLayout> layout,
              const ModelFolder& folder,
              store::AtomicFolder target);
  void cut_into_shards();
  core::Result<void> open_shard();
  core::Result<void> close_shard();
  core::Result<void> write_index() const;

  std::shared_ptr<const ParamLayout> layout_;
  ModelFolder folder_;
  store::AtomicFolder target_;
  std::vector<Shard> shards_;
  std::size_t shard_ = 0;  // the one being written
  std::optional<WeightsWriter> file_;
  std::vector<store::CheckpointFile> written_;
};

// Writes the weights of a store, `noted` or not.
core::Result<void> write_model(const ParamStore& params,
                               const ModelFolder& folder,
                               bool noted = false);

}  // namespace troupe::model
