// Hugging Face safetensors files: 8 bytes of header length, a JSON header, then the tensors' bytes.
// The reader maps the file and checks the header against the limits before it uses it: sizes,
// counts, ranks, dtypes, no overlap, no gap, no byte beyond the end (store/limits.hpp). Its spans
// live as long as the reader or a copy of it. One thread, or readers only.
#pragma once

#include "runtime/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::store {

enum class Dtype : std::uint8_t {
  kBool,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kU16,
  kI16,
  kF16,
  kBf16,
  kU32,
  kI32,
  kF32,
  kU64,
  kI64,
  kF64
};
std::string_view dtype_name(Dtype dtype) noexcept;  // "F32", as in the file
std::uint64_t dtype_bytes(Dtype dtype) noexcept;    // of one element

struct TensorInfo {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;
  std::int64_t count = 0;            // elements
  std::uint64_t begin = 0, end = 0;  // bytes, from the end of the header
};

class SafetensorsFile {
 public:
  // Errors: kNotFound, kData (malformed; names the file and, where there is one, the tensor).
  static core::Result<SafetensorsFile> open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }  // by place in the file
  const TensorInfo* find(std::string_view name) const;                 // null when absent
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  std::span<const std::byte> bytes(const TensorInfo& tensor) const;
  // Values of an F32, BF16 or F16 tensor as f32 into out[tensor.count]; other dtypes are refused.
  core::Result<void> read_f32(const TensorInfo& tensor, float* out) const;

 private:
  SafetensorsFile(std::filesystem::path path,
                  std::shared_ptr<const std::byte> map,
                  std::uint64_t size)
      : path_(std::move(path)), map_(std::move(map)), size_(size) {}
  core::Result<void> parse_header();

  std::filesystem::path path_;
  std::shared_ptr<const std::byte> map_;  // of the whole file; its last owner unmaps it
  std::uint64_t size_ = 0;
  std::uint64_t data_start_ = 0;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::map<std::string, std::string> metadata_;
};

// One tensor to write. `data` holds elements of `dtype`, except that kBf16 with `from_f32` set
// holds f32 values, rounded to nearest even on the way out.
struct TensorSource {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;
  const void* data = nullptr;
  bool from_f32 = false;
};

// Writes the tensors in the given order. Not synced: AtomicFolder::commit or sync_path does that.
core::Result<void> write_safetensors(const std::filesystem::path& path,
                                     std::span<const TensorSource> tensors,
                                     const std::map<std::string, std::string>& metadata);

}  // namespace troupe::store
