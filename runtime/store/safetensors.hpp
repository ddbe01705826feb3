// Reads and writes Hugging Face safetensors files: 8 bytes of header length (little-endian), a JSON
// header, then the tensors' bytes. The reader maps the file into memory. It refuses headers beyond
// the bounds of store/limits.hpp, unknown dtypes, and tensors that overlap, leave gaps or pass the
// end of the file. Its spans are valid as long as the reader or a copy of it. A reader does not
// change once opened, so any thread may use it.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/store/hashed_file.hpp"

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
std::string_view dtype_name(Dtype dtype) noexcept;  // as in the file: "F32"
std::uint64_t dtype_bytes(Dtype dtype) noexcept;    // bytes per element

struct TensorInfo {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;
  std::int64_t count = 0;            // elements
  std::uint64_t begin = 0, end = 0;  // byte offsets from the end of the header
};

class SafetensorsFile {
 public:
  // Errors: kNotFound, kResources (cannot be opened or mapped), kData (malformed; names the file
  // and, if one is at fault, the tensor).
  static core::Result<SafetensorsFile> open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }  // by offset in the file
  const TensorInfo* find(std::string_view name) const;                 // null if absent
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  std::span<const std::byte> bytes(const TensorInfo& tensor) const;
  // Writes an F32, BF16 or F16 tensor as f32 to out[tensor.count]. Error kData: another dtype.
  core::Result<void> read_f32(const TensorInfo& tensor, float* out) const;
  // Reads its elements [first, first + count), all of which must exist.
  core::Result<void> read_f32(const TensorInfo& tensor,
                              std::int64_t first,
                              std::int64_t count,
                              float* out) const;

 private:
  SafetensorsFile(std::filesystem::path path,
                  std::shared_ptr<const std::byte> map,
                  std::uint64_t size)
      : path_(std::move(path)), map_(std::move(map)), size_(size) {}
  core::Result<void> parse_header();

  std::filesystem::path path_;
  std::shared_ptr<const std::byte> map_;  // the whole file; the last owner unmaps it
  std::uint64_t size_ = 0;
  std::uint64_t data_start_ = 0;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::map<std::string, std::string> metadata_;
};

// A tensor that is to be written.
struct TensorShape {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;
};

// Writes a file piece by piece: the header first, then the tensors' bytes in the order in which
// they were announced. The file is hashed on the way. One thread.
class SafetensorsWriter {
 public:
  static core::Result<SafetensorsWriter> create(const std::filesystem::path& path,
                                                std::span<const TensorShape> tensors,
                                                const std::map<std::string, std::string>& metadata);

  // The next bytes, as they are stored. A piece may belong to several tensors.
  core::Result<void> append(const void* data, std::size_t bytes);
  // The next `count` numbers, of a tensor of type kF32, or of type kBf16, to which they are rounded
  // (nearest, ties to even).
  core::Result<void> append_f32(const float* values, std::int64_t count, Dtype dtype);
  // Waits until everything appended is on disk.
  core::Result<void> sync() { return file_.sync(); }
  // Closes the file, all of whose bytes were appended.
  core::Result<FileDigest> close();

 private:
  SafetensorsWriter(HashedFile file, std::uint64_t bytes)
      : file_(std::move(file)), missing_(bytes) {}
  HashedFile file_;
  std::uint64_t missing_;  // bytes that are still to come
};

// One tensor to write; `data` points to elements of `dtype`.
struct TensorSource {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;
  const void* data = nullptr;
};

// Writes the tensors in the given order, without syncing; AtomicFolder::commit or sync_path syncs.
core::Result<FileDigest> write_safetensors(const std::filesystem::path& path,
                                           std::span<const TensorSource> tensors,
                                           const std::map<std::string, std::string>& metadata);

}  // namespace troupe::store
