// A message that is longer than a frame travels in parts, each a frame of its own. When all are
// there a small frame, `whole`, stands for it: with the message's header, as a request or as an
// answer. Pure functions.
#pragma once

#include "runtime/wire/frame.hpp"
#include "runtime/wire/header.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace troupe::wire {

struct Part {
  std::uint64_t message = 0;  // its number; a sender gives each once in an epoch
  std::uint32_t index = 0;
  std::uint64_t bytes = 0;          // of the whole message
  std::span<const std::byte> data;  // of the frame that it was read from
};

struct Whole {
  std::uint64_t message = 0;
  std::uint64_t epoch = 0;  // of the sender of its parts
};

// How many parts a message has, and the bytes of the one at `index`.
std::uint32_t part_count(std::uint64_t message_bytes);
std::span<const std::byte> part_of(std::span<const std::byte> message, std::uint32_t index);

Frame part_frame(const Header& header, const Part& part);
Frame whole_frame(const Header& header, const Whole& whole);

// Nothing for a frame of another kind, and for a broken one.
std::optional<Part> read_part(const Frame& frame);
std::optional<Whole> read_whole(const Frame& frame);

}  // namespace troupe::wire
