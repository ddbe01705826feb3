// Writes tensors of a model to a safetensors file from numbers that come piece by piece in the
// order of the flat buffer, so that nobody needs to have all of them. One thread.
#pragma once

#include "runtime/core/range.hpp"
#include "runtime/core/result.hpp"
#include "runtime/model/params.hpp"
#include "runtime/store/safetensors.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace troupe::model {

class WeightsWriter {
 public:
  // `views` are neighbours of a layout, in its order.
  static core::Result<WeightsWriter> create(const std::filesystem::path& path,
                                            std::span<const ParamView> views,
                                            StorageDtype dtype,
                                            const std::map<std::string, std::string>& metadata);

  // Takes the elements `place` of the flat buffer, which are at `numbers` on the host. Each piece
  // begins where the one before it ended. Writes what belongs to these tensors.
  core::Result<void> add(core::Range place, const float* numbers);
  // Whether all numbers of the tensors have come.
  bool complete() const { return next_ == views_.size(); }
  core::Result<store::FileDigest> close() { return file_.close(); }

 private:
  WeightsWriter(store::SafetensorsWriter file, std::vector<ParamView> views, store::Dtype dtype)
      : file_(std::move(file)), views_(std::move(views)), dtype_(dtype) {}

  store::SafetensorsWriter file_;
  std::vector<ParamView> views_;
  store::Dtype dtype_;
  std::size_t next_ = 0;  // the first view that is not complete
};

// The numbers of a flat buffer of some layout, in host or device memory.
struct FlatNumbers {
  const float* at = nullptr;
  std::int64_t count = 0;
  core::Memory* memory = nullptr;
};
inline FlatNumbers numbers_in(const ParamStore& store) {
  return {store.data(), store.size(), &store.memory()};
}

// Calls `use` with all numbers, from first to last: at once if they are on the host, else a piece
// of at most 16 MiB at a time. Ends with the first error. Call it on the thread that owns the
// memory's team.
using UsePiece = std::function<core::Result<void>(core::Range place, const float* numbers)>;
core::Result<void> each_piece(const FlatNumbers& numbers, const UsePiece& use);

// All tensors of a layout as f32, from numbers in a flat buffer or from pieces that `each` gives to
// what it is called with, from first to last.
using EachPiece = std::function<core::Result<void>(const UsePiece& use)>;
core::Result<store::FileDigest> write_tensors(const ParamLayout& layout,
                                              const EachPiece& each,
                                              const std::filesystem::path& path);
core::Result<store::FileDigest> write_tensors(const ParamLayout& layout,
                                              const FlatNumbers& numbers,
                                              const std::filesystem::path& path);

}  // namespace troupe::model
