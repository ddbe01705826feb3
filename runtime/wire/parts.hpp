// Splits a message that is longer than a frame into parts, each a frame of its own. After the
// parts, a small frame, `whole`, takes the place of the message: it has the message's header and is
// a request or an answer. Pure functions.
#pragma once

#include "runtime/wire/frame.hpp"
#include "runtime/wire/header.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace troupe::wire {

struct Part {
  std::uint64_t message = 0;  // a number, unique per sender and epoch
  std::uint32_t index = 0;
  std::uint64_t bytes = 0;          // size of the whole message
  std::span<const std::byte> data;  // points into the frame that it was read from
};

struct Whole {
  std::uint64_t message = 0;
  std::uint64_t epoch = 0;  // epoch of the sender of the parts
};

// The number of parts of a message, and the bytes of part `index`.
std::uint32_t part_count(std::uint64_t message_bytes);
std::span<const std::byte> part_of(std::span<const std::byte> message, std::uint32_t index);

Frame part_frame(const Header& header, const Part& part);
Frame whole_frame(const Header& header, const Whole& whole);

// nullopt for a frame of another kind or a malformed one.
std::optional<Part> read_part(const Frame& frame);
std::optional<Whole> read_whole(const Frame& frame);

}  // namespace troupe::wire
