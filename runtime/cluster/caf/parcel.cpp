#include "runtime/cluster/caf/parcel.hpp"

#include "runtime/wire/limits.hpp"

#include <cstdint>
#include <vector>

namespace troupe::cluster::exchange {

caf::error inspect(caf::serializer& sink, Parcel& parcel) {
  if (parcel.frame) taken_from_caf(*parcel.frame);
  const auto bytes = parcel.frame ? parcel.frame->bytes() : std::span<const std::byte>();
  std::size_t size = bytes.size();
  if (auto error = sink.begin_sequence(size)) return error;
  if (size > 0) {
    // The interface wants a mutable pointer and only reads from it.
    auto* content = const_cast<std::byte*>(bytes.data());
    if (auto error = sink.apply_raw(size, content)) return error;
  }
  return sink.end_sequence();
}

caf::error inspect(caf::deserializer& source, Parcel& parcel) {
  parcel.frame.reset();
  std::size_t size = 0;
  if (auto error = source.begin_sequence(size)) return error;
  if (size > wire::limits::kFrame_bytes_max) {
    // The rest of the message is not read.
    parcel.problem = std::to_string(size) + " bytes, more than the " +
                     std::to_string(wire::limits::kFrame_bytes_max) + " of a frame";
    return caf::none;
  }
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  std::vector<std::uint64_t> words((size + kWord - 1) / kWord);
  if (size > 0) {
    if (auto error = source.apply_raw(size, words.data())) return error;
  }
  if (size % kWord != 0) {
    parcel.problem = "malformed frame: " + std::to_string(size) + " bytes are not a whole message";
    return source.end_sequence();
  }
  auto frame = wire::Frame::from_words(std::move(words));
  if (frame) {
    parcel = Parcel(std::move(frame).value());
  } else {
    parcel.problem = frame.error().message;
  }
  return source.end_sequence();
}

std::string to_string(const Parcel& parcel) {
  return parcel.frame ? "frame of " + std::to_string(parcel.frame->size_bytes()) + " bytes"
                      : "no frame: " + parcel.problem;
}

}  // namespace troupe::cluster::exchange
