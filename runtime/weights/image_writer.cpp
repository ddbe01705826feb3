#include "runtime/weights/image_writer.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/crc32c.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace troupe::weights {
namespace {

constexpr std::int64_t kScratchAlign = 64;

}  // namespace

ImageWriter::ImageWriter(const model::ModelSpec& spec,
                         kernels::PanelDtype dtype,
                         core::Memory& memory,
                         Share share,
                         std::uint64_t bucket_bytes)
    : plan_(spec, dtype, memory), shape_(spec, dtype, bucket_bytes), share_(share) {
  for (std::int64_t unit = 0; unit < plan_.units(); ++unit) {
    const auto place = plan_.place_of(unit), scales = plan_.scales_of(unit);
    unit_bytes_ = std::max(unit_bytes_, place.end - place.begin);
    scales_bytes_ = std::max(scales_bytes_, scales.end - scales.begin);
  }
  unit_bytes_ = (unit_bytes_ + kScratchAlign - 1) / kScratchAlign * kScratchAlign;
}

void ImageWriter::reserve_scratch(int members) {
  while (std::ssize(scratch_) < members)
    scratch_.emplace_back(unit_bytes_ + scales_bytes_);
}

void ImageWriter::reserve_on_device() {
  const auto size = static_cast<std::int64_t>(shape_.image_bytes);
  if (on_device_.size() < size) on_device_ = core::Buffer<char>(size, plan_.memory());
}

void ImageWriter::each_bucket(core::TeamRunner& team, const BucketJob& job) const {
  std::atomic<std::uint32_t> next{0};
  const std::uint32_t count = share_.before(shape_.buckets);
  team.run([&](core::Team member) {
    for (std::uint32_t i = next.fetch_add(1); i < count; i = next.fetch_add(1))
      job(member, share_.bucket(i));
  });
}

char* ImageWriter::place_of(std::uint32_t bucket, char* to) const {
  return to + shape_.begin_of(bucket, share_);
}

std::uint32_t ImageWriter::write_bucket(std::uint32_t index,
                                        const float* flat,
                                        char* to,
                                        char* scratch) {
  const auto begin = static_cast<std::int64_t>(shape_.begin_of(index));
  const std::int64_t end = begin + static_cast<std::int64_t>(shape_.size_of(index));
  char* const image = place_of(index, to) - begin;  // as far as this bucket goes
  std::int64_t next = begin;
  std::uint32_t crc = 0;
  const auto skip_to = [&](std::int64_t place) {  // zeros between tensors
    crc = core::crc32c(image + next, static_cast<std::size_t>(place - next), crc);
    next = place;
  };
  for (const std::int64_t unit : plan_.units_in(begin, end)) {
    const auto place = plan_.place_of(unit);
    const std::int64_t from = std::max(place.begin, begin), last = std::min(place.end, end);
    skip_to(from);
    plan_.fill_unit_at(unit, flat, scratch);
    crc = core::copy_crc32c(image + from, scratch + (from - place.begin),
                            static_cast<std::size_t>(last - from), crc);
    next = last;
  }
  skip_to(end);
  return crc;
}

bool ImageWriter::has_any_of(model::PackPlan::Place place) const {
  if (place.begin == place.end) return false;
  const auto first =
      static_cast<std::uint32_t>(static_cast<std::uint64_t>(place.begin) / shape_.bucket_bytes);
  const auto last =
      static_cast<std::uint32_t>(static_cast<std::uint64_t>(place.end - 1) / shape_.bucket_bytes);
  return share_.before(last + 1) > share_.before(first);
}

// Copies what lies in the share's buckets of the bytes of the image that `from` has.
void ImageWriter::copy_own(model::PackPlan::Place place, const char* from, char* to) const {
  const auto bucket_bytes = static_cast<std::int64_t>(shape_.bucket_bytes);
  for (std::int64_t begin = place.begin; begin < place.end;) {
    const auto bucket = static_cast<std::uint32_t>(begin / bucket_bytes);
    const std::int64_t end = std::min((bucket + 1) * bucket_bytes, place.end);
    if (share_.has(bucket)) {
      std::memcpy(place_of(bucket, to) + begin % bucket_bytes, from + (begin - place.begin),
                  static_cast<std::size_t>(end - begin));
    }
    begin = end;
  }
}

void ImageWriter::write_part(core::TeamRunner& team,
                             const float* flat,
                             core::Range part,
                             char* to) {
  const bool on_host = plan_.memory().on_host();
  std::vector<std::int64_t> units;
  for (const auto& stretch : plan_.stretches_in(part)) {
    for (std::int64_t i = stretch.first_unit; i < stretch.first_unit + stretch.units; ++i)
      if (has_any_of(plan_.place_of(i)) || has_any_of(plan_.scales_of(i))) units.push_back(i);
  }
  if (on_host) {
    reserve_scratch(team.size());
  } else {
    reserve_on_device();
  }
  std::atomic<std::size_t> next{0};
  team.run([&](core::Team member) {
    if (!on_host && member.rank != 0) return;
    for (std::size_t i = next.fetch_add(1); i < units.size(); i = next.fetch_add(1)) {
      if (!on_host) {
        plan_.fill_unit(units[i], flat, on_device_.data(), true);
        continue;
      }
      char* const scratch = scratch_[static_cast<std::size_t>(member.rank)].data();
      plan_.fill_unit_at(units[i], flat, scratch, scratch + unit_bytes_);
      copy_own(plan_.place_of(units[i]), scratch, to);
      copy_own(plan_.scales_of(units[i]), scratch + unit_bytes_, to);
    }
  });
}

void ImageWriter::finish(core::TeamRunner& team, char* to, std::span<std::uint32_t> table) {
  if (!plan_.memory().on_host()) return copy_packed(team, on_device_.data(), to, table);
  each_bucket(team, [&](core::Team, std::uint32_t i) {
    table[i] = core::crc32c(place_of(i, to), shape_.size_of(i));
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

void ImageWriter::copy_packed(core::TeamRunner& team,
                              const char* packed,
                              char* to,
                              std::span<std::uint32_t> table) {
  core::Memory& memory = plan_.memory();
  each_bucket(team, [&](core::Team, std::uint32_t i) {
    const char* const from = packed + shape_.begin_of(i);
    if (memory.on_host()) {
      table[i] = core::copy_crc32c(place_of(i, to), from, shape_.size_of(i));
    } else {
      memory.download(place_of(i, to), from, shape_.size_of(i));
      table[i] = core::crc32c(place_of(i, to), shape_.size_of(i));
    }
  });
}

void ImageWriter::write(core::TeamRunner& team,
                        const model::ParamStore& weights,
                        char* to,
                        std::span<std::uint32_t> table,
                        const char* packed) {
  core::Memory& memory = plan_.memory();
  TROUPE_CHECK((&weights.memory() == &memory || weights.memory().on_host()) &&
                   weights.size() == plan_.flat_size(),
               "weights of another model or memory");
  if (packed == nullptr && !memory.on_host()) {
    reserve_on_device();
    pack(team, weights, on_device_.data());
    packed = on_device_.data();
  }
  if (packed != nullptr) return copy_packed(team, packed, to, table);
  // A unit of int8 panels writes scales elsewhere, too, so all units come before any checksum.
  if (plan_.dtype() == kernels::PanelDtype::kInt8) {
    write_part(team, weights.data(), {0, weights.size()}, to);
    return finish(team, to, table);
  }
  reserve_scratch(team.size());
  each_bucket(team, [&](core::Team member, std::uint32_t i) {
    char* const scratch = scratch_[static_cast<std::size_t>(member.rank)].data();
    table[i] = write_bucket(i, weights.data(), to, scratch);
  });
}

}  // namespace troupe::weights
