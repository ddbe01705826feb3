// Writes safetensors files: the header, then one tensor after another. Values that are rounded to
// bf16 pass through a small buffer.
#include "runtime/core/check.hpp"
#include "runtime/store/append_file.hpp"
#include "runtime/store/float_formats.hpp"
#include "runtime/store/safetensors_header.hpp"

#include <algorithm>
#include <array>

namespace troupe::store {
namespace {

using core::Result;

Result<void> write(AppendFile& file, const void* data, std::size_t bytes) {
  return file.append({static_cast<const char*>(data), bytes});
}

Result<void> write_rounded(AppendFile& file, const float* values, std::int64_t count) {
  std::array<std::uint16_t, 16384> chunk;
  for (std::int64_t done = 0; done < count;) {
    const auto part = std::min<std::int64_t>(count - done, std::ssize(chunk));
    for (std::int64_t i = 0; i < part; ++i) {
      chunk[static_cast<std::size_t>(i)] = f32_to_bf16(values[done + i]);
    }
    TROUPE_TRY(write(file, chunk.data(), static_cast<std::size_t>(part) * sizeof chunk[0]));
    done += part;
  }
  return {};
}

}  // namespace

Result<void> write_safetensors(const std::filesystem::path& path,
                               std::span<const TensorSource> tensors,
                               const std::map<std::string, std::string>& metadata) {
  std::vector<TensorInfo> infos;
  std::uint64_t place = 0;
  for (const TensorSource& tensor : tensors) {
    TensorInfo info{tensor.name, tensor.dtype, tensor.shape, 0, place, 0};
    std::uint64_t bytes = 0;
    TROUPE_CHECK(checked_size(info.shape, info.dtype, info.count, bytes), "tensor size overflows");
    TROUPE_CHECK(!tensor.from_f32 || tensor.dtype == Dtype::kBf16, "from_f32 is for bf16");
    place += bytes;
    info.end = place;
    infos.push_back(std::move(info));
  }
  const std::string header = format_safetensors_header(infos, metadata);
  TROUPE_TRY_ASSIGN(file, AppendFile::create(path));
  const std::uint64_t length = header.size();
  TROUPE_TRY(write(file, &length, sizeof length));
  TROUPE_TRY(file.append(header));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].from_f32) {
      TROUPE_TRY(write_rounded(file, static_cast<const float*>(tensors[i].data), infos[i].count));
    } else {
      TROUPE_TRY(write(file, tensors[i].data, infos[i].end - infos[i].begin));
    }
  }
  return file.close();
}

}  // namespace troupe::store
