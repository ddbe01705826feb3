#include "runtime/wire/parts.hpp"

#include "runtime/wire/bodies.hpp"
#include "runtime/wire/limits.hpp"

#include <algorithm>

namespace troupe::wire {
namespace {

// Bytes of a message in one part. Leaves 4 KiB of the frame for its header.
constexpr std::uint64_t kPart_bytes = limits::kFrame_bytes_max - (4u << 10);

}  // namespace

std::uint32_t part_count(std::uint64_t message_bytes) {
  return static_cast<std::uint32_t>((message_bytes + kPart_bytes - 1) / kPart_bytes);
}

std::span<const std::byte> part_of(std::span<const std::byte> message, std::uint32_t index) {
  const std::uint64_t begin = std::min<std::uint64_t>(index * kPart_bytes, message.size());
  return message.subspan(begin, std::min<std::uint64_t>(kPart_bytes, message.size() - begin));
}

Frame part_frame(const Header& header, const Part& part) {
  Outgoing outgoing(header);
  auto out = outgoing.envelope().initPart();
  out.setMessage(part.message);
  out.setIndex(part.index);
  out.setBytes(part.bytes);
  out.setData({reinterpret_cast<const capnp::byte*>(part.data.data()), part.data.size()});
  return finished(outgoing);
}

Frame whole_frame(const Header& header, const Whole& whole) {
  return frame_of(header, &EnvelopeBuilder::initWhole, whole);
}

std::optional<Part> read_part(const Frame& frame) {
  using Found = std::optional<Part>;
  const auto found = read_frame<Found>(frame, [](EnvelopeReader envelope) {
    if (!envelope.isPart()) return Found();
    const auto in = envelope.getPart();
    const auto data = in.getData();
    return Found({in.getMessage(), in.getIndex(), in.getBytes(),
                  std::as_bytes(std::span<const capnp::byte>(data.begin(), data.size()))});
  });
  return found ? *found : std::nullopt;
}

std::optional<Whole> read_whole(const Frame& frame) {
  const auto found =
      body_of<Whole>(frame, &EnvelopeReader::isWhole, &EnvelopeReader::getWhole, "not whole");
  return found ? std::optional(*found) : std::nullopt;
}

}  // namespace troupe::wire
