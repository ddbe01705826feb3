// Writes safetensors files: the header, then one tensor after another. Values that are rounded to
// bf16 pass through a small buffer.
#include "runtime/core/check.hpp"
#include "runtime/store/float_formats.hpp"
#include "runtime/store/safetensors_header.hpp"

#include <algorithm>
#include <utility>

namespace troupe::store {

Result<SafetensorsWriter> SafetensorsWriter::create(
    const std::filesystem::path& path,
    std::span<const TensorShape> tensors,
    const std::map<std::string, std::string>& metadata) {
  std::vector<TensorInfo> infos;
  std::uint64_t place = 0;
  for (const TensorShape& tensor : tensors) {
    TensorInfo info{tensor.name, tensor.dtype, tensor.shape, 0, place, 0};
    std::uint64_t bytes = 0;
    TROUPE_CHECK(checked_size(info.shape, info.dtype, info.count, bytes), "tensor size overflows");
    place += bytes;
    info.end = place;
    infos.push_back(std::move(info));
  }
  const std::string header = format_safetensors_header(infos, metadata);
  TROUPE_TRY_ASSIGN(file, HashedFile::create(path));
  const std::uint64_t length = header.size();
  TROUPE_TRY(file.append(&length, sizeof length));
  TROUPE_TRY(file.append(header.data(), header.size()));
  return SafetensorsWriter(std::move(file), place);
}

Result<void> SafetensorsWriter::append(const void* data, std::size_t bytes) {
  TROUPE_CHECK(bytes <= missing_, "more bytes than the tensors have");
  missing_ -= bytes;
  return file_.append(data, bytes);
}

Result<void> SafetensorsWriter::append_f32(const float* values, std::int64_t count, Dtype dtype) {
  if (dtype == Dtype::kF32) return append(values, static_cast<std::size_t>(count) * sizeof(float));
  TROUPE_CHECK(dtype == Dtype::kBf16, "f32 values are stored as f32 or bf16");
  constexpr std::int64_t kChunk = std::int64_t{1} << 19;
  std::vector<std::uint16_t> chunk(static_cast<std::size_t>(std::min(count, kChunk)));
  for (std::int64_t done = 0; done < count;) {
    const auto part = std::min(count - done, kChunk);
    std::transform(values + done, values + done + part, chunk.begin(), f32_to_bf16);
    TROUPE_TRY(append(chunk.data(), static_cast<std::size_t>(part) * sizeof chunk[0]));
    done += part;
  }
  return {};
}

Result<FileDigest> SafetensorsWriter::close() {
  TROUPE_CHECK(missing_ == 0, "bytes of the tensors are missing");
  return file_.close();
}

Result<FileDigest> write_safetensors(const std::filesystem::path& path,
                                     std::span<const TensorSource> tensors,
                                     const std::map<std::string, std::string>& metadata) {
  std::vector<TensorShape> shapes;
  for (const TensorSource& tensor : tensors)
    shapes.push_back({tensor.name, tensor.dtype, tensor.shape});
  TROUPE_TRY_ASSIGN(file, SafetensorsWriter::create(path, shapes, metadata));
  for (const TensorSource& tensor : tensors) {
    std::int64_t count = 0;
    std::uint64_t bytes = 0;
    checked_size(tensor.shape, tensor.dtype, count, bytes);
    TROUPE_TRY(file.append(tensor.data, bytes));
  }
  return file.close();
}

}  // namespace troupe::store
