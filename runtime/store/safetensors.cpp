#include "runtime/store/safetensors.hpp"

#include "runtime/core/owned_fd.hpp"
#include "runtime/store/float_formats.hpp"
#include "runtime/store/io_error.hpp"
#include "runtime/store/limits.hpp"
#include "runtime/store/safetensors_header.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace troupe::store {
namespace {

constexpr std::uint64_t kLength_bytes = 8;

core::Failure malformed(const std::filesystem::path& path,
                        const std::string& why,
                        std::string_view advice = {}) {
  return core::fail(ErrorCode::kData, path.string() + ": not a valid safetensors file: " + why,
                    advice);
}

template <class Convert>
void convert_16(const std::byte* from, std::int64_t count, float* out, Convert convert) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, from + 2 * i, sizeof bits);
    out[i] = convert(bits);
  }
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  const core::OwnedFd input(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!input) return io_failure("open", path, errno);
  struct stat status {};
  if (::fstat(input.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return malformed(path, "it is not a regular file");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size < kLength_bytes) {
    return malformed(path,
                     "it has " + std::to_string(size) + " bytes, less than its header length");
  }
  void* const map = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, input.get(), 0);
  if (map == MAP_FAILED) return io_failure("map", path, errno);
  SafetensorsFile file(
      path,
      std::shared_ptr<const std::byte>(static_cast<const std::byte*>(map),
                                       [map, size](const std::byte*) { ::munmap(map, size); }),
      size);
  TROUPE_TRY(file.parse_header());
  return file;
}

Result<void> SafetensorsFile::parse_header() {
  constexpr std::string_view kPointer = "version https://git-lfs";
  if (std::string_view(reinterpret_cast<const char*>(map_.get()), size_).starts_with(kPointer)) {
    return malformed(path_, "it is a Git LFS pointer, not the weights",
                     "run `git lfs pull` in its folder, or name the model as OWNER/NAME");
  }
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, map_.get(), sizeof header_size);  // x86 is little-endian
  if (header_size > limits::kSafetensorsHeader_bytes_max) {
    return malformed(path_, "its header claims " + std::to_string(header_size) + " bytes",
                     "the limit is " + std::to_string(limits::kSafetensorsHeader_bytes_max));
  }
  if (header_size > size_ - kLength_bytes) {
    return malformed(path_, "truncated: its header claims " + std::to_string(header_size) +
                                " bytes, the file has " + std::to_string(size_));
  }
  data_start_ = kLength_bytes + header_size;
  const std::string_view text(reinterpret_cast<const char*>(map_.get() + kLength_bytes),
                              header_size);
  auto header = parse_safetensors_header(text, size_ - data_start_);
  if (!header) return malformed(path_, header.error().message);
  tensors_ = std::move(header->tensors);
  metadata_ = std::move(header->metadata);
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    by_name_.emplace(tensors_[i].name, i);
  return {};
}

const TensorInfo* SafetensorsFile::find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

std::span<const std::byte> SafetensorsFile::bytes(const TensorInfo& tensor) const {
  return {map_.get() + data_start_ + tensor.begin, tensor.end - tensor.begin};
}

Result<void> SafetensorsFile::read_f32(const TensorInfo& tensor, float* out) const {
  return read_f32(tensor, 0, tensor.count, out);
}

Result<void> SafetensorsFile::read_f32(const TensorInfo& tensor,
                                       std::int64_t first,
                                       std::int64_t count,
                                       float* out) const {
  const std::byte* const from =
      bytes(tensor).data() + static_cast<std::uint64_t>(first) * dtype_bytes(tensor.dtype);
  switch (tensor.dtype) {
    case Dtype::kF32:
      std::memcpy(out, from, static_cast<std::size_t>(count) * sizeof(float));
      return {};
    case Dtype::kBf16:
      convert_16(from, count, out, bf16_to_f32);
      return {};
    case Dtype::kF16:
      convert_16(from, count, out, f16_to_f32);
      return {};
    default:
      break;
  }
  return core::fail(ErrorCode::kData,
                    path_.string() + ": tensor " + tensor.name + " is stored as " +
                        std::string(dtype_name(tensor.dtype)),
                    "weights are read from F32, BF16 or F16");
}

}  // namespace troupe::store
