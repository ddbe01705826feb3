#include "runtime/weights/image_writer.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/crc32c.hpp"

#include <algorithm>
#include <atomic>

namespace troupe::weights {

ImageWriter::ImageWriter(const model::ModelSpec& spec,
                         kernels::PanelDtype dtype,
                         core::Memory& memory,
                         std::uint64_t bucket_bytes)
    : plan_(spec, dtype, memory), shape_(spec, dtype, bucket_bytes) {}

void ImageWriter::reserve_scratch(int members) {
  std::int64_t most = 0;
  if (scratch_.empty()) {
    for (std::int64_t unit = 0; unit < plan_.units(); ++unit)
      most = std::max(most, plan_.place_of(unit).end - plan_.place_of(unit).begin);
  } else {
    most = scratch_.front().size();
  }
  while (std::ssize(scratch_) < members)
    scratch_.emplace_back(most);
}

std::uint32_t ImageWriter::write_bucket(std::uint32_t index,
                                        const float* flat,
                                        char* image,
                                        char* scratch) {
  const auto bytes = shape_.bucket(image, index);
  const std::int64_t begin = bytes.data() - image, end = begin + std::ssize(bytes);
  std::int64_t next = begin;
  std::uint32_t crc = 0;
  const auto skip_to = [&](std::int64_t place) {  // zeros between tensors
    crc = core::crc32c(image + next, static_cast<std::size_t>(place - next), crc);
    next = place;
  };
  for (const std::int64_t unit : plan_.units_in(begin, end)) {
    const auto place = plan_.place_of(unit);
    const std::int64_t from = std::max(place.begin, begin), to = std::min(place.end, end);
    skip_to(from);
    plan_.fill_unit_at(unit, flat, scratch);
    crc = core::copy_crc32c(image + from, scratch + (from - place.begin),
                            static_cast<std::size_t>(to - from), crc);
    next = to;
  }
  skip_to(end);
  return crc;
}

// A unit of int8 panels writes scales elsewhere, too, so all units come before any checksum.
void ImageWriter::write_scaled(core::TeamRunner& team, const float* flat, char* image) {
  std::atomic<std::int64_t> next{0};
  team.run([&](core::Team) {
    for (std::int64_t unit = next.fetch_add(1); unit < plan_.units(); unit = next.fetch_add(1))
      plan_.fill_unit(unit, flat, image);
  });
}

void ImageWriter::pack(core::TeamRunner& team, const model::ParamStore& weights, char* image) {
  const bool here = &weights.memory() == &plan_.memory();
  team.run([&](core::Team member) {
    if (member.rank != 0) return;
    if (here) return plan_.fill(weights.data(), image);
    for (std::int64_t unit = 0; unit < plan_.units(); ++unit)
      plan_.fill_unit(unit, weights.data(), image);
  });
}

void ImageWriter::write(core::TeamRunner& team,
                        const model::ParamStore& weights,
                        char* image,
                        std::span<std::uint32_t> table,
                        const char* packed) {
  core::Memory& memory = plan_.memory();
  TROUPE_CHECK((&weights.memory() == &memory || weights.memory().on_host()) &&
                   weights.size() == plan_.flat_size(),
               "weights of another model or memory");
  const bool on_host = memory.on_host();
  const bool scaled = plan_.dtype() == kernels::PanelDtype::kInt8;
  const bool packs = on_host && packed == nullptr;
  if (!on_host && packed == nullptr) packed = packed_on_device(team, weights);
  if (packs && scaled) write_scaled(team, weights.data(), image);
  if (packs && !scaled) reserve_scratch(team.size());
  std::atomic<std::uint32_t> next{0};
  team.run([&](core::Team member) {
    for (std::uint32_t i = next.fetch_add(1); i < shape_.buckets; i = next.fetch_add(1)) {
      const auto bytes = shape_.bucket(image, i);
      char* const to = image + (bytes.data() - image);
      const char* const from = packs ? nullptr : packed + (bytes.data() - image);
      if (packs && !scaled) {
        char* const scratch = scratch_[static_cast<std::size_t>(member.rank)].data();
        table[i] = write_bucket(i, weights.data(), image, scratch);
      } else if (packs) {
        table[i] = core::crc32c(bytes.data(), bytes.size());
      } else if (on_host) {
        table[i] = core::copy_crc32c(to, from, bytes.size());
      } else {
        memory.download(to, from, bytes.size());
        table[i] = core::crc32c(bytes.data(), bytes.size());
      }
    }
  });
}

const char* ImageWriter::packed_on_device(core::TeamRunner& team,
                                          const model::ParamStore& weights) {
  const auto size = static_cast<std::int64_t>(shape_.image_bytes);
  if (on_device_.size() < size) on_device_ = core::Buffer<char>(size, plan_.memory());
  pack(team, weights, on_device_.data());
  return on_device_.data();
}

}  // namespace troupe::weights
