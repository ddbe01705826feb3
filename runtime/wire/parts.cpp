#include "runtime/wire/parts.hpp"

#include "runtime/core/check.hpp"
#include "runtime/wire/envelope.hpp"
#include "runtime/wire/limits.hpp"

#include <algorithm>

namespace troupe::wire {
namespace {

// Leaves room for the header.
constexpr std::uint64_t kPart_bytes = limits::kFrame_bytes_max - (4u << 10);

Frame finished(Outgoing& outgoing) {
  auto frame = outgoing.finish();
  TROUPE_CHECK(frame.has_value(), "a part fits a frame");
  return std::move(frame).value();
}

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
  Outgoing outgoing(header);
  auto out = outgoing.envelope().initWhole();
  out.setMessage(whole.message);
  out.setEpoch(whole.epoch);
  return finished(outgoing);
}

std::optional<Part> read_part(const Frame& frame) {
  const auto incoming = Incoming::open(frame);
  if (!incoming) return std::nullopt;
  using Found = std::optional<Part>;
  const auto found = incoming->read([](schema::Envelope::Reader envelope) -> core::Result<Found> {
    if (!envelope.isPart()) return Found();
    const auto in = envelope.getPart();
    const auto data = in.getData();
    return Found(Part{in.getMessage(), in.getIndex(), in.getBytes(),
                      std::as_bytes(std::span<const capnp::byte>(data.begin(), data.size()))});
  });
  return found ? *found : std::nullopt;
}

std::optional<Whole> read_whole(const Frame& frame) {
  const auto incoming = Incoming::open(frame);
  if (!incoming) return std::nullopt;
  using Found = std::optional<Whole>;
  const auto found = incoming->read([](schema::Envelope::Reader envelope) -> core::Result<Found> {
    if (!envelope.isWhole()) return Found();
    return Found(Whole{envelope.getWhole().getMessage(), envelope.getWhole().getEpoch()});
  });
  return found ? *found : std::nullopt;
}

}  // namespace troupe::wire
